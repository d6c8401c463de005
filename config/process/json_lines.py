"""Lines of the log as JSON, for the supervisor, which loads neither Django nor a logger."""

import json
import time

TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def json_line(level: str, logger: str, message: str) -> str:
    """A line as `config.process.log_lines.JsonLineFormatter` writes it, without line feed."""
    now = time.strftime(TIME_FORMAT, time.gmtime())
    return json.dumps({"time": now, "level": level, "logger": logger, "message": message})
