"""BabelDOC as it is, but for two things that it downloads from hosts that are no package registries: its fonts, and the token ranks of tiktoken.

Stands in for them: the DejaVu fonts of Debian, and one token a byte (BabelDOC counts tokens only to fill its questions).
"""
import os
import sys

import pymupdf
import tiktoken
from babeldoc.assets import assets
from pathlib import Path

FONTS = Path(os.environ["FONTS"])
tokens = tiktoken.Encoding("bytes", pat_str=r"[\s\S]", mergeable_ranks={bytes([byte]): byte for byte in range(256)}, special_tokens={})
tiktoken.encoding_for_model = lambda _: tokens


def installed_font(name):
    wanted = assets.EMBEDDING_FONT_METADATA[name]
    path = FONTS / f"DejaVu{'Serif' if wanted['serif'] else 'Sans'}{'-Bold' if wanted['bold'] else ''}.ttf"
    font = pymupdf.Font(fontfile=str(path))
    return path, {**wanted, "ascent": round(font.ascender * 1000), "descent": round(font.descender * 1000)}


assets.get_font_and_metadata = installed_font

from babeldoc.main import cli  # noqa: E402, after the fonts are in place

sys.argv[0] = "babeldoc"
cli()
