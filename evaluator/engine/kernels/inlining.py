"""How loops and the pieces they are made of are compiled: each piece is optimised in the loop alone.

Numba optimises every function that compiled code calls, makes machine code of it, and wraps it for callers in C and in
Python; and optimises it again in each of its callers. A piece is only ever copied into its caller, so all of that is
for nothing: a piece ends here as the compiler's own language, and the loop that copies it is optimised as a whole. What
is computed is the same: no optimisation may change the result of an operation on floating-point numbers.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from functools import cache, cached_property
from typing import Any

from llvmlite.binding import Linkage, address_of_symbol, create_new_module_pass_manager
from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering

# How the names of functions begin that Python calls.
_FROM_PYTHON = "_ZN7cpython"


class _NotOptimised(JITCodeLibrary):  # type: ignore[misc]  # Numba has no types
    """Code that waits to be copied into a caller's; what it calls, a loop copies beside it, once for all its pieces."""

    _linking_libraries: Any
    _shared_module: Any

    def finalize(self) -> None:
        """Copy nothing into it."""
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._finalized = True

    @cached_property
    def alone(self) -> Any:
        """The code without what it calls; a module that holds it already takes no second copy."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = "linkonce_odr"
        return self._final_module

    def _get_module_for_linking(self) -> Any:
        """Return the code with what it calls, for a caller that is no loop."""
        if self._shared_module is None:
            whole = self.alone.clone()
            for library in _beneath(self._linking_libraries):
                whole.link_in(_code_of(library), preserve=True)
            self._shared_module = whole
        return self._shared_module

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout


def _beneath(libraries: Iterable[Any]) -> list[Any]:
    """Return some libraries, and those that the pieces among them call, directly or not, each once.

    Each comes after all that name it: a module takes no function that nothing in it calls yet.
    """
    seen: set[Any] = set()
    found: list[Any] = []

    def add(library: Any) -> None:
        if library in seen:
            return
        seen.add(library)
        if isinstance(library, _NotOptimised):
            for called in library._linking_libraries[::-1]:
                add(called)
        found.append(library)

    for library in [*libraries][::-1]:
        add(library)
    return found[::-1]


def _code_of(library: Any) -> Any:
    return library.alone if isinstance(library, _NotOptimised) else library._get_module_for_linking()


class _LoopCode(JITCodeLibrary):  # type: ignore[misc]
    """Code of a loop, optimised once with all its pieces, of which none was optimised before.

    Pieces are simplified before they are copied, and the whole afterwards: then optimising it once does what optimising
    it twice did, in half the time.
    """

    _linking_libraries: Any

    def finalize(self) -> None:
        """Copy the pieces into it, and theirs, and optimise all of it."""
        for library in _beneath(self._linking_libraries):
            if hasattr(self, "_reload_init"):  # earlier versions have none
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(_code_of(library), preserve=True)
        linked, self._linking_libraries = self._linking_libraries, []
        super().finalize()
        self._linking_libraries = linked
        called = (each.name for each in self._final_module.functions if each.is_declaration)
        missing = [name for name in called if name.startswith("_Z") and address_of_symbol(name) is None]
        assert not missing, f"no code for {missing[0]}, and a call of it would end the process"

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            # What takes the arguments of Python apart runs once a call: a third of the code, and of the time.
            if function.name.startswith(_FROM_PYTHON) and not function.is_declaration:
                function.add_function_attribute("noinline")
                function.add_function_attribute("optnone")
        everything, builder = self._codegen._module_pass_manager()
        first = create_new_module_pass_manager()
        first.add_sroa_pass()
        first.add_simplify_cfg_pass()
        first.add_always_inliner_pass()
        first.add_sroa_pass()
        first.add_simplify_cfg_pass()
        first.add_instruction_combine_pass()
        for passes in (first, everything):
            passes.run(self._final_module, builder)


class _Lower(Lower):  # type: ignore[misc]
    """Writes no code that counts references where there is none to count."""

    def incref(self, typ: Any, val: Any) -> None:
        """Write code that counts one more."""
        if _counts(self.context, typ):
            super().incref(typ, val)

    def decref(self, typ: Any, val: Any) -> None:
        """Write code that counts one less."""
        if _counts(self.context, typ):
            super().decref(typ, val)


@cache
def _counts(context: Any, kind: Any) -> bool:
    return bool(context.data_model_manager[kind].contains_nrt_meminfo())


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerLoop(NativeLowering):  # type: ignore[misc]
    _name = "evaluator_loop"

    def run_pass(self, state: Any) -> bool:
        """Lower a loop."""
        if state.library is None:
            state.library = _LoopCode(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
        return bool(super().run_pass(state))

    @property
    def lowering_class(self) -> type[Lower]:
        """What writes the code."""
        return _Lower


@register_pass(mutates_CFG=True, analysis_only=False)
class _LowerPiece(_LowerLoop):
    _name = "evaluator_piece"

    def run_pass(self, state: Any) -> bool:
        """Lower a function that is never called from outside compiled code."""
        state.flags.no_compile = True
        state.flags.no_cfunc_wrapper = True
        state.library = _NotOptimised(state.targetctx.codegen(), state.func_id.func_qualname)
        super().run_pass(state)
        result = state["cr"]
        # Numba finds the code by the function that Python would call, which calls nothing.
        name = result.fndesc.qualname.split(".")[-1]
        handle = _dynfunc.make_function(result.fndesc.lookup_module(), name, "", 0, result.env, (state.library,))
        state.targetctx.insert_user_function(handle, result.fndesc, [state.library])
        state.reload_init.extend(getattr(state.library, "_reload_init", ()))  # earlier versions have none
        state["cr"] = result._replace(cfunc=handle)
        return True


class _Steps(CompilerBase):  # type: ignore[misc]
    """Numba's own steps, but for the one that writes code."""

    _lowering: type[NativeLowering]

    def define_pipelines(self) -> list[Any]:
        """Return the steps."""
        steps = DefaultPassBuilder.define_nopython_pipeline(self.state, self._lowering._name)
        steps.passes = [(self._lowering if step is NativeLowering else step, said) for step, said in steps.passes]
        steps.finalize()
        return [steps]


class Piece(_Steps):
    """Compiles a piece."""

    _lowering = _LowerPiece


class Loop(_Steps):
    """Compiles a loop, with its pieces: without looking for garbage, of which there is none before the end."""

    _lowering = _LowerLoop

    def compile_extra(self, func: Any) -> Any:
        """Return the compiled function."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            result = super().compile_extra(func)
        finally:
            if collecting:
                gc.enable()
        # What pieces need of Python, say to raise an error that holds a number, Numba gives to machine code alone.
        for environment in result._find_referenced_environments():
            self.state.targetctx.codegen().set_env(environment.env_name, environment)
        return result
