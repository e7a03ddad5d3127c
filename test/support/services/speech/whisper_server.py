"""Whisper (tiny, English) behind POST /v1/audio/transcriptions, for tests: usage whisper_server.py MODEL_FOLDER. Says its port on standard output.

The model is the real one, through faster-whisper, the library that speaches serves in production; this server stands in for speaches,
which is in no package registry. It knows one model and English alone, and answers the parts of verbose_json that are asked for.
"""
import email.parser
import email.policy
import http.server
import io
import json
import sys

from faster_whisper import WhisperModel

MODEL_NAME = "whisper-tiny.en"
model = WhisperModel(sys.argv[1], device="cpu", compute_type="int8", cpu_threads=2, local_files_only=True)


def fields_of(content_type, body):
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(b"content-type: " + content_type.encode() + b"\r\n\r\n" + body)
    return {part.get_param("name", header="content-disposition"): part.get_payload(decode=True) for part in message.iter_parts()}


def transcribe(fields):
    if fields["model"].decode() != MODEL_NAME:
        return 404, {"detail": f"Model '{fields['model'].decode()}' is not installed locally."}
    language = fields.get("language", b"en").decode()
    try:
        segments, info = model.transcribe(io.BytesIO(fields["file"]), language=language, beam_size=5)
        text = "".join(segment.text for segment in segments)
    except Exception as error:
        return 400, {"error": {"message": str(error)}}
    return 200, {"task": "transcribe", "text": text, "language": info.language, "duration": info.duration}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])) if "content-length" in self.headers else self.chunks()
        status, answer = transcribe(fields_of(self.headers["content-type"], body)) if self.path == "/v1/audio/transcriptions" else (404, {"detail": "Not Found"})
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def chunks(self):
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
