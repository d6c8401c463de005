"""Costs: what the calls of a range cost, by tool, agent, model and conversation."""
