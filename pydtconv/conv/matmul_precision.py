"""What float32 operands are multiplied as: `config.set_float32_matmul_precision`, and what makes that faster.

"high" splits each operand in two bfloat16, a high and a low half, and takes the sum of three products of halves for one
of float32; "medium" rounds operands to bfloat16.  Sums are float32.  Only AMX multiplies bfloat16 so much faster than
float32 that three products gain; on other CPUs, and where another micro-kernel is active, products are as "highest"
says.  With "medium" Winograd's convolutions may have larger tiles everywhere, which need fewer multiplications and
round more.
"""

from __future__ import annotations

from pydtconv import config, microkernels
from pydtconv._ext import ukr

#: products of bfloat16 for one of float32, by the precision; None: float32's own
PRODUCTS: dict[str, int | None] = {"highest": None, "high": 3, "medium": 1}
#: the micro-kernel that makes them worth it
FAST = "amx_bf16"


def kernel_in_force(dtype: str) -> str:
    """The micro-kernel's name; it is chosen where it has not been."""
    if ukr.current(dtype) < 0:
        return microkernels.selected(dtype).name
    name: str = ukr.table(dtype)[ukr.current(dtype)][0]
    return name


def reason() -> str | None:
    """None where this machine multiplies bfloat16 fast enough, else why not."""
    name = kernel_in_force("bfloat16")
    return None if name == FAST else f"only {FAST} makes products of bfloat16 faster than float32's, {name} does not"


def in_force() -> int | None:
    """How many products of bfloat16 take the place of one of float32: 3, 1, or None for none."""
    products = PRODUCTS[config.float32_matmul_precision()]
    return products if products is None or reason() is None else None


def are_coarse() -> bool:
    """Whether larger errors than those of float32's usual algorithms are allowed."""
    return config.float32_matmul_precision() == "medium"


def why_not(products: int | None, coarse: bool = False, dtype: str = "float32") -> str | None:
    """None where the choice of an algorithm may take one with so many products, or larger errors, else why not."""
    now = config.float32_matmul_precision()
    if coarse and dtype != "float32":
        return f"errors as large as these are allowed in float32 alone, got {dtype}"
    if coarse and not are_coarse():
        return f"config.set_float32_matmul_precision('medium') allows it, {now!r} is active"
    if products in (None, in_force()):
        return None
    precision = next(name for name, each in PRODUCTS.items() if each == products)
    if now != precision:
        return f"config.set_float32_matmul_precision({precision!r}) allows it, {now!r} is active"
    return reason()


def described(device: str = "cpu") -> str:
    """A line for people, of what is active on a device; empty for "highest"."""
    precision = config.float32_matmul_precision()
    if precision == "highest":
        return ""
    if device != "cpu":
        tf32 = f"{precision}: operands rounded to TF32 (10 bits), where tensor cores multiply them"
        alone = f"{precision}: operands of convgemm rounded to TF32 (10 bits), else computed as highest"
        return tf32 if device.startswith("gpu") else alone
    against = reason()
    large = "large tiles in Winograd's convolutions"
    if against is not None:
        return f"{precision}, {f'{large}; all else ' if are_coarse() else ''}computed as highest: {against}"
    how = f"operands rounded to bfloat16, or {large}," if are_coarse() else "three products of bfloat16 halves"
    return f"{precision}: {how} where they are faster"
