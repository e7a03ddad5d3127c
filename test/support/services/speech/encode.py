"""Encodes a WAV in another format, with the FFmpeg that PyAV carries: usage encode.py IN.wav OUT.mp3|.m4a|.ogg."""
import sys

import av

CODECS = {"mp3": "libmp3lame", "m4a": "aac", "ogg": "libopus"}
source, target = sys.argv[1:]
codec = CODECS[target.rsplit(".", 1)[1]]
with av.open(source) as reader, av.open(target, "w") as writer:
    stream = writer.add_stream(codec, rate=48000 if codec == "libopus" else 22050, layout="mono")
    resampler = av.AudioResampler(format=stream.codec_context.format, layout="mono", rate=stream.codec_context.rate)
    for frame in reader.decode(audio=0):
        for resampled in resampler.resample(frame):
            writer.mux(stream.encode(resampled))
    for resampled in resampler.resample(None):
        writer.mux(stream.encode(resampled))
    writer.mux(stream.encode(None))
