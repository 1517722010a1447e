"""Event times as numbers and as text."""
from datetime import datetime, timezone


def milliseconds(text):
    """`2013-01-01T10:00:00Z` or with a fraction of a second, as milliseconds since the epoch."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    since = moment - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def timestamp(time):
    """Milliseconds since the epoch as arrow-json writes a UTC timestamp of that unit."""
    moment = datetime.fromtimestamp(time // 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
    fraction = ".%03d" % (time % 1000) if time % 1000 else ""
    return moment + fraction + "Z"
