"""Pages for tests: `pages.py make OUT.pdf` makes a page in two columns with a picture; `pages.py look IN.pdf` says where everything is on each page."""
import json
import sys

import pymupdf

#: Enough of it that BabelDOC does not take the page for a scan.
LEFT = "Ships in a harbour are held by ropes. The ropes must be strong, and they must be checked every day by the crew. " * 4
RIGHT = "An anchor holds a ship where no quay is near. It is made of iron and weighs several tons, and a chain leads to it. " * 4


def make(path):
    document = pymupdf.open()
    for title in ("A study of moorings", "A study of anchors"):
        page = document.new_page(width=612, height=792)
        page.insert_text((72, 90), title, fontsize=22, fontname="hebo")
        page.insert_textbox(pymupdf.Rect(72, 120, 290, 400), LEFT, fontsize=11, fontname="tiro")
        page.insert_textbox(pymupdf.Rect(322, 120, 540, 400), RIGHT, fontsize=11, fontname="tiro")
        page.draw_rect(pymupdf.Rect(72, 430, 540, 600), color=(0, 0, 1), fill=(0.8, 0.9, 1))
    document.save(path)


def look(path):
    document = pymupdf.open(path)
    print(json.dumps([{
        "size": [page.rect.width, page.rect.height],
        "words": [{"text": word[4], "x": word[0], "y": word[1]} for word in page.get_text("words")],
        "boxes": [[round(edge) for edge in drawing["rect"]] for drawing in page.get_drawings()],
    } for page in document]))


{"make": make, "look": look}[sys.argv[1]](sys.argv[2])
