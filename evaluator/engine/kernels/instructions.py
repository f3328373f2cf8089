"""What compiled loops run for `evaluator.engine.kernels.intrinsics`; it loads with the first loop."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel.models import StructModel
from numba.extending import lower_cast, register_model

from evaluator.engine.kernels.compiling import instruction, overloads, tested
from evaluator.engine.kernels.intrinsics import (
    DISPLAYS_AHEAD,
    borrowed,
    count_bits,
    lowest_bit,
    one_row,
    prefetch,
    prefetch_logged,
)


class BorrowedArray(types.Array):  # type: ignore[misc]  # Numba has no types
    """The type of a borrowed array, and of its views; where one meets an array that is none, both are arrays."""

    def __init__(self, of: types.Array) -> None:
        super().__init__(
            of.dtype, of.ndim, of.layout, readonly=not of.mutable, aligned=of.aligned, name=f"borrowed {of.name}"
        )

    def copy(self, *args: Any, **kwargs: Any) -> BorrowedArray:
        """Return the type of a view of the array."""
        return BorrowedArray(super().copy(*args, **kwargs))

    def unify(self, typing_context: Any, other: Any) -> Any:
        """Return the type that serves both."""
        unified = super().unify(typing_context, other)
        return BorrowedArray(unified) if unified is not None and isinstance(other, BorrowedArray) else unified


@register_model(BorrowedArray)
class _BorrowedArrayModel(StructModel):  # type: ignore[misc]
    """An array's memory layout, whose owner is no owner to Numba, and always null."""

    def __init__(self, manager: Any, kind: BorrowedArray) -> None:
        lengths = types.UniTuple(types.intp, kind.ndim)
        super().__init__(manager, kind, [
            ("meminfo", types.voidptr), ("parent", types.pyobject), ("nitems", types.intp), ("itemsize", types.intp),
            ("data", types.CPointer(kind.dtype)), ("shape", lengths), ("strides", lengths),
        ])  # fmt: skip


@lower_cast(BorrowedArray, types.Array)  # type: ignore[untyped-decorator]
def _array_of_borrowed(context: Any, builder: Any, borrowed_kind: Any, kind: Any, value: Any) -> Any:
    return value


def _borrowed_kind(kind: Any) -> Any:
    if isinstance(kind, types.BaseTuple):
        parts = [_borrowed_kind(part) for part in kind]
        return types.BaseTuple.from_types(parts, getattr(kind, "instance_class", None))
    return BorrowedArray(kind) if type(kind) is types.Array else kind


@instruction
def _borrow(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _without_owner(context, builder, signature.args[0], arguments[0])

    return _borrowed_kind(value)(value), generate


def _without_owner(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.BaseTuple):
        for at, part in enumerate(kind):
            inner = _without_owner(context, builder, part, builder.extract_value(value, at))
            value = builder.insert_value(value, inner, at)
    elif isinstance(kind, types.Array | types.NumPyRandomGeneratorType):
        array = cgutils.create_struct_proxy(kind)(context, builder, value=value)
        for owner in ("meminfo", "parent"):
            setattr(array, owner, cgutils.get_null_value(getattr(array, owner).type))
        value = array._getvalue()
    return value


@overloads(borrowed)
def _compile_borrowed(value: Any) -> Any:
    return (lambda value: _borrow(value)) if tested() else lambda value: value


@instruction
def _prefetch(typing_context: Any, vectors: Any, ahead: Any, r: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
        rows, dimension = cgutils.unpack_tuple(builder, array.shape)
        row = builder.add(builder.mul(arguments[1], rows), arguments[2])
        first = builder.mul(row, dimension)
        last = builder.sub(builder.add(first, dimension), dimension.type(1))
        byte, flag = ir.PointerType(ir.IntType(8)), ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        )
        for element in (first, last):  # a row of up to 64 bytes may lie across two cache lines
            pointer = builder.bitcast(builder.gep(array.data, [element]), byte)
            # To read, to be kept in every cache, data.
            builder.call(function, [pointer, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(vectors, types.intp, types.intp), generate


@overloads(prefetch)
def _compile_prefetch(vectors: Any, ahead: Any, r: Any) -> Any:
    return (lambda vectors, ahead, r: _prefetch(vectors, ahead, r)) if tested() else prefetch


@overloads(prefetch_logged)
def _compile_prefetch_logged(vectors: Any, action: Any, i: Any) -> Any:
    def ask(vectors: Any, action: Any, i: Any) -> None:
        # No `min` and no `max`: each takes Numba longer to compile than this.
        soon = i + DISPLAYS_AHEAD
        soon = soon if soon < action.shape[0] else action.shape[0] - 1
        _prefetch(vectors[soon], 0, action[soon] if vectors.shape[1] > 1 and action[soon] > 0 else 0)

    return ask if tested() else prefetch_logged


@instruction
def _one_row(typing_context: Any, vectors: Any, r: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
        _, dimension = cgutils.unpack_tuple(builder, array.shape)
        array.data = builder.gep(array.data, [builder.mul(arguments[1], dimension)])
        array.shape = cgutils.pack_array(builder, [dimension.type(1), dimension])
        array.nitems = dimension
        return array._getvalue()

    return vectors(vectors, types.intp), generate


@overloads(one_row)
def _compile_one_row(vectors: Any, r: Any) -> Any:
    # Nobody counts the references of a borrowed array, and of rows that lie one after the other a row is whole.
    plain = not isinstance(vectors, BorrowedArray) or vectors.layout != "C"
    return one_row if plain else lambda vectors, r: _one_row(vectors, r)


@instruction
def _count(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@instruction
def _lowest(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.int64(types.uint64), generate


@overloads(count_bits)
def _compile_count_bits(word: Any) -> Any:
    return lambda word: _count(word)


@overloads(lowest_bit)
def _compile_lowest_bit(word: Any) -> Any:
    return lambda word: _lowest(word)
