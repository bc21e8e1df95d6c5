"""Draws the pictures of "How it works" as SVG files, readable on light and dark pages.

python docs/drawings.py        writes docs/_static/drawings/*.svg
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape

FOLDER = Path(__file__).parent / "_static" / "drawings"
INK, PAPER, LINE = "#1c2733", "#fbfbf8", "#8a94a0"
BLUE, ORANGE, GREEN, RED, GREY = "#9ec5e8", "#f6c48d", "#a9d8b0", "#f0a8a0", "#e3e6ea"


class Drawing:
    """Shapes on a sheet of width x height points."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self.parts: list[str] = []

    def box(self, x: float, y: float, w: float, h: float, text: str = "", fill: str = GREY, size: int = 13) -> None:
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{w}" height="{h}" rx="3" fill="{fill}" stroke="{INK}" stroke-width="1"/>'
        )
        lines = text.split("\n") if text else []
        for i, line in enumerate(lines):
            self.text(
                x + w / 2, y + h / 2 + (i - (len(lines) - 1) / 2) * (size + 3) + size * 0.35, line, size, "middle"
            )

    def text(self, x: float, y: float, text: str, size: int = 13, anchor: str = "start", bold: bool = False) -> None:
        weight = ' font-weight="bold"' if bold else ""
        style = f'font-size="{size}" text-anchor="{anchor}" fill="{INK}"{weight}'
        self.parts.append(f'<text x="{x}" y="{y}" {style}>{escape(text)}</text>')

    def arrow(self, x1: float, y1: float, x2: float, y2: float) -> None:
        self.parts.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{INK}" stroke-width="1.4" marker-end="url(#head)"/>'
        )

    def grid(
        self,
        x: float,
        y: float,
        rows: int,
        columns: int,
        cell: float = 16,
        fill: Callable[[int, int], str] = lambda row, column: PAPER,
    ) -> None:
        for row in range(rows):
            for column in range(columns):
                self.parts.append(
                    f'<rect x="{x + column * cell}" y="{y + row * cell}" width="{cell}" height="{cell}" '
                    f'fill="{fill(row, column)}" stroke="{LINE}" stroke-width="0.7"/>'
                )

    def svg(self) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" '
            f'height="{self.height}" font-family="system-ui, Helvetica, Arial, sans-serif" role="img">'
            f"<title>{escape(self.title)}</title>"
            '<defs><marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
            f'<path d="M0,0 L9,4 L0,8 z" fill="{INK}"/></marker></defs>'
            f'<rect width="{self.width}" height="{self.height}" rx="8" fill="{PAPER}"/>'
        )
        return head + "\n" + "\n".join(self.parts) + "\n</svg>\n"


def stack() -> Drawing:
    d = Drawing(720, 330, "From a Keras-style script to micro-kernels")
    rows = [
        ("Keras-style script", "layers, losses, optimizers, callbacks with Keras 3's names", BLUE),
        (
            "graph of operators",
            "rewritten by passes: bias, ReLU, padding, addition join the convolution",
            BLUE,
        ),
        (
            "plan of one step",
            "algorithms, schedule, an offset for every buffer: the peak is known ahead",
            GREEN,
        ),
        ("C kernels, OpenMP", "convolution as a matrix product whose packing reads the image", ORANGE),
        ("micro-kernels", "BLIS's assembly, AVX-512, AVX2, NEON, portable C; tested before use", ORANGE),
    ]
    for i, (name, text, fill) in enumerate(rows):
        y = 15 + 62 * i
        d.box(20, y, 160, 44, name, fill)
        d.text(200, y + 27, text, 12)
        if i:
            d.arrow(100, y - 18, 100, y - 1)
    return d


def im2col() -> Drawing:
    d = Drawing(720, 300, "im2col builds a matrix with every pixel kh x kw times")
    d.text(20, 28, "im2col: each output pixel gets a row with all the pixels that it reads", 14, bold=True)
    window = {(r, c) for r in (1, 2, 3) for c in (1, 2, 3)}
    d.grid(30, 60, 6, 6, 20, lambda r, c: ORANGE if (r, c) in window else BLUE)
    d.text(90, 205, "image x", 13, "middle")
    d.text(90, 222, "ih x iw x ci", 11, "middle")
    d.arrow(160, 120, 215, 120)
    d.text(187, 108, "copy", 11, "middle")
    d.grid(225, 48, 12, 9, 16, lambda r, c: ORANGE if r == 5 else BLUE)
    d.text(297, 262, "matrix in memory", 13, "middle")
    d.text(297, 279, "n oh ow  x  kh kw ci: 9 times the image for 3x3", 11, "middle")
    d.text(385, 146, "x", 20, "middle")
    d.grid(400, 75, 9, 5, 16, lambda r, c: GREEN)
    d.text(440, 240, "filters", 13, "middle")
    d.text(440, 257, "kh kw ci  x  co", 11, "middle")
    d.text(500, 146, "=", 20, "middle")
    d.grid(520, 48, 12, 5, 16, lambda r, c: ORANGE if r == 5 else GREY)
    d.text(560, 262, "output", 13, "middle")
    d.text(560, 279, "n oh ow  x  co", 11, "middle")
    return d


def convgemm() -> Drawing:
    d = Drawing(720, 300, "CONVGEMM reads the image while it packs")
    d.text(20, 28, "CONVGEMM: packing reads the image; only one block of the matrix exists at a time", 14, bold=True)
    d.grid(30, 60, 6, 6, 20, lambda r, c: ORANGE if r < 4 else BLUE)
    d.text(90, 205, "image x", 13, "middle")
    d.text(90, 222, "stays where it is", 11, "middle")
    d.arrow(160, 110, 228, 110)
    d.text(194, 98, "pack", 12, "middle")
    d.box(235, 65, 110, 90, "block MC x KC\nof the matrix\n(in L2 cache)", ORANGE)
    d.text(290, 175, "panels of MR rows", 11, "middle")
    d.box(235, 205, 110, 60, "block KC x NC\nof the filters\n(in L3 cache)", GREEN)
    d.arrow(350, 110, 415, 140)
    d.arrow(350, 235, 415, 165)
    d.box(420, 120, 110, 64, "micro-kernel\nMR x NR\nin registers", BLUE)
    d.arrow(535, 152, 590, 152)
    d.box(595, 110, 100, 84, "tile of y\n+ bias, ReLU\nas it is stored", GREY)
    return d


def deconvgemm() -> Drawing:
    d = Drawing(720, 240, "DECONVGEMM adds products to the image gradient as they leave the micro-kernel")
    d.text(20, 28, "DECONVGEMM: the product is added to dx while it is still in cache", 14, bold=True)
    d.box(20, 60, 110, 60, "dy\nn oh ow  x  co", GREY)
    d.box(20, 150, 110, 60, "filters\ntransposed", GREEN)
    d.arrow(135, 90, 205, 118)
    d.arrow(135, 180, 205, 148)
    d.box(210, 100, 120, 66, "matrix product\nNC columns\nat a time", BLUE)
    d.arrow(335, 133, 395, 133)
    d.box(400, 93, 130, 80, "narrow buffer\n(rows of one image\nx NC columns)", ORANGE)
    d.arrow(535, 133, 590, 133)
    d.text(562, 120, "add", 12, "middle")
    d.grid(600, 80, 6, 6, 17, lambda r, c: BLUE)
    d.text(651, 205, "dx", 13, "middle")
    return d


def rdx() -> Drawing:
    d = Drawing(720, 420, "REINDEX turns the filter gradient into a forward convolution, in two ways")
    d.text(20, 28, "rdx: the pixels that one tap reads are put side by side, tap by tap", 14, bold=True)

    def tap(r: int, c: int) -> str:
        return (ORANGE, GREEN, RED, BLUE)[2 * (r % 2) + c % 2]

    d.grid(40, 50, 8, 8, 15, tap)
    d.text(100, 188, "x, stride 2", 12, "middle")
    d.arrow(170, 110, 235, 110)
    d.text(202, 98, "gather", 12, "middle")
    d.grid(245, 50, 8, 8, 15, lambda r, c: tap(r // 4, c // 4))
    d.text(305, 188, "I' of 2x2 filters: blocks of oh x ow", 12, "middle")
    d.text(305, 204, "kh oh x kw ow x n: as large as im2col's matrix", 11, "middle")
    d.arrow(375, 110, 440, 110)
    d.box(445, 77, 150, 66, "CONVGEMM with dy,\nkernel (oh, ow),\nstrides (oh, ow)", BLUE)
    d.arrow(600, 110, 640, 110)
    d.box(645, 80, 60, 60, "dw", GREEN)
    d.text(20, 240, "exchanged_strides: x is transposed, strides and dilation change places", 14, bold=True)
    d.grid(40, 262, 8, 8, 15, lambda r, c: ORANGE if r % 2 == 0 and c % 2 == 0 else BLUE)
    d.text(100, 400, "x, stride 2", 12, "middle")
    d.arrow(170, 322, 235, 322)
    d.text(202, 310, "transpose", 12, "middle")
    d.grid(245, 262, 8, 8, 15, lambda r, c: ORANGE if r % 2 == 0 and c % 2 == 0 else BLUE)
    d.text(305, 400, "I': ih x iw x n, as large as x", 11, "middle")
    d.arrow(375, 322, 440, 322)
    d.box(445, 289, 150, 66, "CONVGEMM with dy,\nkernel (oh, ow),\ndilation 2 (orange)", BLUE)
    d.arrow(600, 322, 640, 322)
    d.box(645, 292, 60, 60, "dw", GREEN)
    return d


def direct() -> Drawing:
    d = Drawing(720, 270, "The direct method skips taps that fall on padding")
    d.text(20, 28, "direct: a matrix product that reads the image in place and skips what is padding", 14, bold=True)

    def fill(r: int, c: int) -> str:
        if r in (0, 7) or c in (0, 9):
            return RED if r == 0 and c < 3 else GREY
        return ORANGE if r in (1, 2) and c < 3 else BLUE

    d.grid(30, 55, 8, 10, 20, fill)
    d.text(130, 240, "padded image; the padding (grey) is not in memory", 12, "middle")
    d.arrow(245, 130, 300, 130)
    taps = "for each output row:\ntaps that lie inside (orange)\nread in place, the red ones\nare never multiplied"
    d.box(305, 80, 170, 100, taps, ORANGE, 12)
    d.arrow(480, 130, 535, 130)
    d.box(540, 85, 160, 90, "tile of 14 pixels x\n32 filters in registers,\nsum over all taps\nand channels", BLUE, 12)
    return d


def winograd() -> Drawing:
    d = Drawing(720, 280, "Winograd convolution of one block of tiles")
    d.text(20, 28, "winograd F(4x4, 3x3): 36 products for a tile of 16 results instead of 144", 14, bold=True)
    d.grid(25, 62, 8, 8, 15, lambda r, c: ORANGE if r < 6 and c < 6 else BLUE)
    d.text(85, 202, "6 x 6 input tile,", 12, "middle")
    d.text(85, 218, "next one 4 pixels on", 12, "middle")
    d.arrow(152, 120, 196, 120)
    d.box(200, 86, 95, 66, "transform\nBᵀ d B\nadditions only", GREEN, 12)
    d.arrow(298, 120, 336, 120)
    for i in range(3):
        d.box(340 + 8 * i, 74 + 8 * i, 110, 70, "36 matrix\nproducts\ntiles x ci x co" if i == 2 else "", BLUE, 12)
    d.text(405, 190, "micro-kernels", 11, "middle")
    d.box(345, 210, 120, 44, "filters: G g Gᵀ,\nonce per pass", GREEN, 12)
    d.arrow(405, 208, 405, 196)
    d.arrow(470, 120, 508, 120)
    d.box(512, 86, 95, 66, "inverse\nAᵀ m A", GREEN, 12)
    d.arrow(610, 120, 640, 120)
    d.grid(645, 90, 4, 4, 15, lambda r, c: ORANGE)
    d.text(675, 168, "4 x 4 of y", 12, "middle")
    d.text(20, 268, "A block of tiles stays in the L2 cache from the first transform to the last.", 12)
    return d


def fourier() -> Drawing:
    d = Drawing(720, 290, "Convolution of one block of tiles in the Fourier domain")
    d.text(20, 28, "fft 12x12 of 5x5: 214 products for a tile of 64 results instead of 1600", 14, bold=True)
    d.grid(25, 62, 10, 10, 12, lambda r, c: ORANGE if r < 8 and c < 8 else BLUE)
    d.text(85, 202, "12 x 12 input tile,", 12, "middle")
    d.text(85, 218, "next one 8 pixels on", 12, "middle")
    d.arrow(152, 120, 186, 120)
    d.box(190, 86, 105, 66, "transforms of\ntwo tiles: x1 + i x2\n74 frequencies", GREEN, 12)
    d.arrow(298, 120, 336, 120)
    for i in range(3):
        d.box(
            340 + 8 * i,
            74 + 8 * i,
            110,
            70,
            "3 real products\nfor each frequency\ntiles x ci x co" if i == 2 else "",
            BLUE,
            12,
        )
    d.text(405, 190, "micro-kernels", 11, "middle")
    d.box(345, 210, 120, 44, "filters, with\nzeros: once per pass", GREEN, 12)
    d.arrow(405, 208, 405, 196)
    d.arrow(470, 120, 508, 120)
    d.box(512, 86, 95, 66, "inverse, in\nthe place of\nthe input's", GREEN, 12)
    d.arrow(610, 120, 640, 120)
    d.grid(645, 76, 6, 6, 11, lambda r, c: ORANGE if r < 4 and c < 4 else GREY)
    d.text(678, 164, "8 x 8 kept,", 12, "middle")
    d.text(678, 180, "the rest has", 12, "middle")
    d.text(678, 196, "wrapped around", 12, "middle")
    d.text(20, 278, "A block's spectra stay in the L2 cache: what products give replaces what they have read.", 12)
    return d


def loops() -> Drawing:
    d = Drawing(720, 330, "The five loops around the micro-kernel")
    d.text(20, 28, "Five loops around one micro-kernel (BLIS's)", 14, bold=True)
    rows = [
        ("jc", "NC columns of B", "L3 share"),
        ("pc", "KC of the depth: B is packed", "L3"),
        ("ic", "MC rows of A: A is packed, here the image is read", "L2"),
        ("jr", "NR columns: a panel of B", "L1"),
        ("ir", "MR rows: a panel of A", "registers"),
    ]
    for i, (name, text, cache) in enumerate(rows):
        x, y = 30 + 28 * i, 48 + 44 * i
        d.box(x, y, 600 - 28 * i, 34, "", (BLUE, BLUE, ORANGE, GREY, GREY)[i])
        d.text(x + 12, y + 22, f"{name}:  {text}", 13)
        d.text(618, y + 22, cache, 12, "end")
    d.box(170, 272, 460, 40, "micro-kernel:  C (MR x NR) = A (MR x k) B (k x NR) + C", GREEN)
    return d


def plan() -> Drawing:
    d = Drawing(720, 280, "Buffers of a step placed in one arena")
    d.text(20, 28, "Every buffer has a life time and an offset: the peak is known before anything runs", 14, bold=True)
    d.arrow(60, 245, 700, 245)
    d.text(690, 265, "steps", 12, "end")
    d.arrow(60, 245, 60, 45)
    d.text(52, 60, "offset", 12, "end")
    blocks = [
        (70, 205, 560, 38, "x1 (kept for backward)", BLUE),
        (130, 165, 420, 38, "x2 (kept for backward)", BLUE),
        (200, 125, 240, 38, "x3", BLUE),
        (90, 125, 90, 38, "workspace", ORANGE),
        (250, 85, 80, 38, "workspace", ORANGE),
        (345, 85, 120, 38, "dx3", GREEN),
        (455, 125, 120, 38, "dx2", GREEN),
        (565, 165, 100, 38, "dx1", GREEN),
        (480, 85, 80, 38, "workspace", ORANGE),
    ]
    for x, y, w, h, text, fill in blocks:
        d.box(x, y, w, h, text, fill, 12)
    d.text(200, 262, "forward", 12, "middle")
    d.text(500, 262, "backward", 12, "middle")
    d.parts.append(f'<line x1="345" y1="50" x2="345" y2="245" stroke="{LINE}" stroke-dasharray="4 3"/>')
    return d


def overlap() -> Drawing:
    d = Drawing(720, 220, "Gradients are summed while backward goes on")
    d.text(20, 28, "Buckets of gradients travel while backward goes on", 14, bold=True)
    d.text(20, 75, "computing", 12)
    for i, (x, w, text) in enumerate(
        [(110, 170, "forward"), (282, 90, "layer 4"), (374, 90, "layer 3"), (466, 90, "layers 2, 1")]
    ):
        d.box(x, 55, w, 32, text, BLUE if i == 0 else GREEN, 12)
    d.box(640, 55, 60, 32, "update", GREY, 12)
    d.text(20, 135, "network", 12)
    for x, text in ((374, "bucket 1"), (466, "bucket 2"), (558, "bucket 3")):
        d.box(x, 115, 80, 32, text, ORANGE, 12)
    for x in (372, 464, 556):
        d.arrow(x, 89, x + 12, 112)
    d.text(
        20, 190, "Gradients lie in the order in which backward completes them: a bucket is a slice of one array.", 12
    )
    return d


DRAWINGS: dict[str, Callable[[], Drawing]] = {
    drawing.__name__: drawing
    for drawing in (stack, im2col, convgemm, deconvgemm, rdx, direct, winograd, fourier, loops, plan, overlap)
}


def plan_pictures() -> dict[str, str]:
    """The graph of a small residual network as it is traced, and after the passes; out of a plan's dump."""
    import pydtconv as keras
    from pydtconv import layers

    image = keras.Input((32, 32, 16), name="image")
    y = layers.Conv2D(16, 3, padding="same", name="conv_1")(image)
    y = layers.ReLU(name="relu_1")(layers.BatchNormalization(name="norm_1")(y))
    y = layers.Conv2D(16, 3, padding="same", name="conv_2")(y)
    y = layers.ReLU(name="relu_2")(layers.Add(name="add")([y, image]))
    scores = layers.Dense(10, activation="softmax", name="scores")(layers.GlobalAveragePooling2D(name="pool")(y))
    model = keras.Model(image, scores)
    model.compile("sgd", "sparse_categorical_crossentropy")
    with tempfile.TemporaryDirectory() as folder:
        model.plan(batch_size=32, dump=folder)
        pictures = sorted(Path(folder).glob("*.svg"))
        return {"graph_traced": pictures[0].read_text(), "graph_planned": pictures[-1].read_text()}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, drawing in DRAWINGS.items():
        (FOLDER / f"{name}.svg").write_text(drawing().svg())
        print(FOLDER / f"{name}.svg")
    for name, svg in plan_pictures().items():
        (FOLDER / f"{name}.svg").write_text(svg)
        print(FOLDER / f"{name}.svg")


if __name__ == "__main__":
    main()
