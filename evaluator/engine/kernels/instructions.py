"""What compiled loops run for `evaluator.engine.kernels.intrinsics`; it loads with the first loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel.models import PrimitiveModel, StructModel
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    lower_builtin,
    lower_cast,
    lower_getattr_generic,
    register_model,
    type_callable,
)

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

    def traverse(self, builder: Any) -> list[Any]:
        """Return the fields in which there may be references to count."""
        return []


class BorrowedTuple(types.Type):  # type: ignore[misc]
    """The type of a borrowed NamedTuple of this package, of which compiled code has the address, to name its fields.

    A tuple itself is handed from piece to piece field by field, which was most of a loop's code before it is optimised.
    Tuples of others stay tuples: their policies may take them apart in any way.
    """

    def __init__(self, instance_class: Any, parts: tuple[Any, ...]) -> None:
        self.instance_class, self.parts = instance_class, dict(zip(instance_class._fields, parts, strict=True))
        super().__init__(f"borrowed {instance_class.__name__}({', '.join(str(part) for part in parts)})")

    @property
    def key(self) -> Any:
        """What tells types apart."""
        return self.instance_class, tuple(self.parts.values())


@register_model(BorrowedTuple)
class _BorrowedTupleModel(PrimitiveModel):  # type: ignore[misc]
    """The address of a tuple, in which those that are its fields lie themselves."""

    def __init__(self, manager: Any, kind: BorrowedTuple) -> None:
        fields = [
            manager[part].get_value_type().pointee
            if isinstance(part, BorrowedTuple)
            else manager[part].get_value_type()
            for part in kind.parts.values()
        ]
        super().__init__(manager, kind, ir.LiteralStructType(fields).as_pointer())


@infer_getattr
class _FieldType(AttributeTemplate):  # type: ignore[misc]
    key = BorrowedTuple

    def generic_resolve(self, kind: BorrowedTuple, name: str) -> Any:
        """Return the type of a field, None of what is none."""
        return kind.parts.get(name)


@lower_getattr_generic(BorrowedTuple)  # type: ignore[untyped-decorator]
def _lower_field(context: Any, builder: Any, kind: BorrowedTuple, value: Any, name: str) -> Any:
    address = cgutils.gep_inbounds(builder, value, 0, [*kind.parts].index(name))
    return address if isinstance(kind.parts[name], BorrowedTuple) else builder.load(address)


@lower_cast(BorrowedArray, types.Array)  # type: ignore[untyped-decorator]
def _array_of_borrowed(context: Any, builder: Any, borrowed_kind: Any, kind: Any, value: Any) -> Any:
    return value


def _has_address(kind: Any) -> bool:
    return isinstance(kind, types.BaseNamedTuple) and kind.instance_class.__module__.startswith("evaluator.")


def _borrowed_kind(kind: Any) -> Any:
    if isinstance(kind, types.BaseTuple):
        parts = tuple(_borrowed_kind(part) for part in kind)
        if _has_address(kind):
            return BorrowedTuple(kind.instance_class, parts)
        return types.BaseTuple.from_types(parts, getattr(kind, "instance_class", None))
    return BorrowedArray(kind) if type(kind) is types.Array else kind


@type_callable(borrowed)  # type: ignore[untyped-decorator]
def _type_borrowed(typing_context: Any) -> Callable[..., Any]:
    return lambda value: _borrowed_kind(value) if tested() else value


@lower_builtin(borrowed, types.Any)  # type: ignore[untyped-decorator]
def _lower_borrowed(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    if not tested():
        return impl_ret_borrowed(context, builder, signature.return_type, arguments[0])
    return _lend(context, builder, signature.args[0], arguments[0])


def _lend(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return the value without owners; of a NamedTuple of this package where it lies now, while the function runs."""
    if _has_address(kind):
        memory = context.get_value_type(_borrowed_kind(kind)).pointee
        address = cgutils.alloca_once(builder, memory)
        _write_fields(context, builder, kind, value, address)
        return address
    if isinstance(kind, types.BaseTuple):
        parts = [_lend(context, builder, part, builder.extract_value(value, at)) for at, part in enumerate(kind)]
        return context.make_tuple(builder, _borrowed_kind(kind), parts)
    if isinstance(kind, types.Array | types.NumPyRandomGeneratorType):
        model = context.data_model_manager[kind]
        for owner in ("meminfo", "parent"):
            at = model.get_field_position(owner)
            value = builder.insert_value(value, cgutils.get_null_value(value.type.elements[at]), at)
    return value


def _write_fields(context: Any, builder: Any, kind: Any, value: Any, address: Any) -> None:
    for at, part in enumerate(kind):
        field, place = builder.extract_value(value, at), cgutils.gep_inbounds(builder, address, 0, at)
        if _has_address(part):
            _write_fields(context, builder, part, field, place)
        else:
            builder.store(_lend(context, builder, part, field), place)


@type_callable(prefetch)  # type: ignore[untyped-decorator]
def _type_prefetch(typing_context: Any) -> Callable[..., Any]:
    return lambda vectors, ahead, r: types.void(vectors, types.intp, types.intp)


@lower_builtin(prefetch, types.VarArg(types.Any))  # type: ignore[untyped-decorator]
def _lower_prefetch(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    if tested():
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


@overloads(prefetch_logged)
def _compile_prefetch_logged(vectors: Any, action: Any, i: Any) -> Any:
    def ask(vectors: Any, action: Any, i: Any) -> None:
        # No `min` and no `max`: each takes Numba longer to compile than this.
        soon = i + DISPLAYS_AHEAD
        soon = soon if soon < action.shape[0] else action.shape[0] - 1
        prefetch(vectors[soon], 0, action[soon] if vectors.shape[1] > 1 and action[soon] > 0 else 0)

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


@type_callable(count_bits)  # type: ignore[untyped-decorator]
@type_callable(lowest_bit)  # type: ignore[untyped-decorator]
def _type_bit(typing_context: Any) -> Callable[..., Any]:
    return lambda word: types.int64(types.uint64)


@lower_builtin(count_bits, types.uint64)  # type: ignore[untyped-decorator]
def _lower_count_bits(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.ctpop(arguments[0])


@lower_builtin(lowest_bit, types.uint64)  # type: ignore[untyped-decorator]
def _lower_lowest_bit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.cttz(arguments[0], context.get_constant(types.boolean, True))
