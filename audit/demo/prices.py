"""What the demo's tools and models cost, in US dollars. Invented, apart from their order."""

TOOLS = {
    "answer_question": ("0.002", ""),
    "fetch_page": ("0.0008", ""),
    "get_forecast": ("0.0015", ""),
    "get_weather": ("0.001", ""),
    "search_docs": ("0.0002", "output.data"),
    "summarise_text": ("0.0005", ""),
}
"""The amount for each call, or for each unit at a path. The other tools have no price."""
MODELS = {
    "claude-haiku-4-5": ("1", "0.1", "5"),
    "claude-sonnet-4-5": ("3", "0.3", "15"),
    "gpt-5-mini": ("0.25", "0.025", "2"),
}
"""For a million tokens: input, of it cached, output. The reporter's model is not here."""
