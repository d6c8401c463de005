"""Tooltrail's SDK: ships the tool calls of LLM agents, and never slows or breaks them."""
