"""The browser and system that a User-Agent header names, in words."""

# In this order: each browser also names those below it.
_BROWSERS = (
    *(("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("FxiOS/", "Firefox")),
    *(("Chrome/", "Chrome"), ("CriOS/", "Chrome"), ("Safari/", "Safari")),
)
_SYSTEMS = (
    *(("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("Windows", "Windows")),
    *(("Mac OS X", "macOS"), ("CrOS", "ChromeOS"), ("Linux", "Linux")),
)


def in_words(user_agent: str) -> str:
    """Such as "Firefox on Windows"; the header itself if it names no browser that we know."""
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), None)
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), None)
    if browser is None:
        return user_agent
    return f"{browser} on {system}" if system else browser
