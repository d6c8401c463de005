"""The demo's agents: each of their functions is one trace.

The agents are tools themselves (`answer_question`, `plan_trip` …), so the calls they make are
nested below them. Chance decides which agent runs and what goes wrong, in the history with a fixed
seed.
"""

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import cycle
from typing import Any

from tooltrail import Trail

from audit.demo.answers import Answers
from audit.demo.tools import Tools
from audit.demo.upstream import FLAWS

QUESTIONS = (
    "row level security",
    "partition",
    "ledger",
    "timeout",
    "violation",
    "schema",
    "gap event",
    "tenant scope",
)
CITIES = ("London", "Berlin", "Lagos", "Lima", "Osaka", "Tromso")
JOBS = ("reindex", "export", "backup")
FILES = ("README.md", "docs/running.md", "docs/glossary.md", "manage.py")
Agent = Callable[[int], Any]  # takes a seed as argument, so that calls differ
WHO = {
    "answer_question": ("librarian", "2.3.0", "claude-sonnet-4-5", "anthropic"),
    "plan_trip": ("travel_planner", "1.8.1", "gpt-5-mini", "openai"),
    "nightly_report": ("reporter", "0.9.4", "gemini-2.5-flash", "gcp.gemini"),
    "triage_ticket": ("support_desk", "4.0.2", "claude-haiku-4-5", "anthropic"),
    "watch_job": ("operator", "1.0.0", "gpt-5-mini", "openai"),
}
"""Name, version, model and provider of the agent of each function."""
WEIGHTS = {
    "answer_question": 38,
    "plan_trip": 26,
    "nightly_report": 16,
    "triage_ticket": 14,
    "watch_job": 6,
}
"""How many of a hundred traces each function gets."""


class Agents:
    """The agents with one set of tools. `run` picks an agent and runs it in a trace."""

    def __init__(self, trail: Trail, tools: Tools) -> None:
        self.trail = trail
        self.answers = Answers()
        self.tools = tools
        # In turn, not by chance, so that every flaw occurs.
        self._flaws = {tool: cycle(FLAWS) for tool in (tools.get_weather, tools.get_forecast)}
        functions: dict[str, Agent] = {
            "answer_question": self._answer_question,
            "plan_trip": self._plan_trip,
            "nightly_report": self._nightly_report,
            "triage_ticket": self._triage_ticket,
            "watch_job": self._watch_job,
        }
        self._functions = {
            name: trail.tool(version="1", name=name)(function)
            for name, function in functions.items()
        }

    def run(self, number: int, rng: random.Random) -> None:
        """Run trace `number`. Suppresses what the tools raise, since it is recorded already."""
        name = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        agent, version, model, provider = WHO[name]
        run_id = f"graph_run_{rng.getrandbits(24):06x}"
        with (
            suppress(Exception),
            self.trail.trace(
                f"demo-{number:05x}",
                run_id=run_id,
                turn_id=f"turn-{number}",
                workflow_id="support_desk",
                case_id=f"crm-{rng.randrange(7000, 7080)}",
                locale=rng.choice(("en-GB", "de-DE", "pt-BR")),
                agent=agent,
                agent_version=version,
                model=model,
                provider=provider,
                principal=f"customer-{number % 40}@example.com",
                environment="demo",
            ),
        ):
            self._functions[name](rng.getrandbits(32))
        self.answers.add(number, WHO[name], run_id)

    def watch_weather(self, number: int) -> None:
        """Call only the weather tool, in trace `number`; every fifth answer has a flaw."""
        flaw = next(self._flaws[self.tools.get_weather]) if number % 5 == 0 else None
        with suppress(Exception), self.trail.trace(f"demo-watch-{number:03x}"):
            self.tools.get_weather(CITIES[number % len(CITIES)], flaw)

    def leave_hanging(self, number: int) -> None:
        """Start a call that never ends, in a thread that dies with the process."""

        def wait() -> None:
            with self.trail.trace(f"demo-{number:05x}", run_id="graph_run_waiting"):
                self.tools.notify_user("ada", "Your export is ready. Approve to send it?")

        threading.Thread(target=self.trail.carry(wait), daemon=True).start()

    def _parallel(self, *calls: Callable[[], Any]) -> list[Any]:
        with ThreadPoolExecutor(len(calls)) as pool:
            futures = [pool.submit(self.trail.carry(call)) for call in calls]
        return [future.result() if future.exception() is None else None for future in futures]

    def _answer_question(self, seed: int) -> Any:
        """Answer a question from the documents."""
        rng, tools = random.Random(seed), self.tools
        question = rng.choice(QUESTIONS)
        with suppress(Exception):
            tools.lookup_term(question.split()[0])
        if rng.random() < 0.05:
            with suppress(Exception):
                tools.search_docs(f'"{question}')  # the agent forgot a quotation mark
        results = self._parallel(
            lambda: tools.search_docs(question.replace(" ", " OR "), 4),
            lambda: tools.search_docs(question.split()[-1], 3),
        )
        pages = [hit["page"] for hits in results if hits for hit in hits][:2] or ["README.md"]
        if rng.random() < 0.04:
            pages.append("docs/answers.md")  # which does not exist
        texts = []
        for page in pages:
            with suppress(Exception):
                texts.append(tools.read_file(page))
        answer = tools.summarise_text("\n".join(texts) or question, 3)
        if rng.random() < 0.3:
            tools.save_note(question, answer["summary"], is_locked=rng.random() < 0.15)
        return {"answer": answer["summary"][:400], "sources": pages}

    def _plan_trip(self, seed: int) -> Any:
        """Look at the weather of some cities and say where to go."""
        rng, tools = random.Random(seed), self.tools
        cities = rng.sample(CITIES, 3)

        def ask(tool: Callable[..., Any], city: str, odds: float) -> Callable[[], Any]:
            flaw = next(self._flaws[tool]) if rng.random() < odds else None
            return lambda: tool(city, flaw)

        reports = self._parallel(*(ask(tools.get_weather, city, 0.1) for city in cities))
        self._parallel(*(ask(tools.get_forecast, city, 0.15) for city in cities[:2]))
        warmth = [report["temperature"] for report in reports if report]
        if warmth:
            tools.calculate(f"round(({' + '.join(map(str, warmth))}) / {len(warmth)}, 2)")
        if rng.random() < 0.1:
            tools.calculate(f"{len(warmth)} > 2")  # a boolean instead of a number
        if rng.random() < 0.06:
            tools.calculate("1 / 0")
        return {"cities": cities, "known": len(warmth)}

    def _nightly_report(self, seed: int) -> Any:
        """Fetch pages, trying again where that helps, and summarise them."""
        rng, tools = random.Random(seed), self.tools
        texts = []
        for page in rng.sample(range(24), 3):
            mood = rng.choices(
                (None, "unavailable", "limited", "broken", "slow"), (74, 12, 8, 3, 3)
            )[0]
            for attempt in (1, 2):
                with suppress(Exception):
                    answer = tools.fetch_page(page, mood, attempt)
                    if isinstance(answer, str):
                        texts.append(answer)
                        break
        return tools.summarise_text("\n".join(texts) or "nothing to report", 2)

    def _triage_ticket(self, seed: int) -> Any:
        """Investigate a ticket; a complicated one makes the agent repeat itself."""
        rng, tools = random.Random(seed), self.tools
        repeats = 5 if rng.random() < 0.25 else 1
        for _ in range(repeats):
            tools.search_docs("error OR failure", 3)
        text = tools.read_file(rng.choice(FILES))
        amount = tools.calculate(f"round({rng.randrange(10, 900)} * 1.19, 2)")
        tools.summarise_text(text, 2)
        return {"priority": rng.choice(("low", "high")), "refund": amount["value"]}

    def _watch_job(self, seed: int) -> Any:
        """Poll a job that makes no progress."""
        rng, tools = random.Random(seed), self.tools
        job = rng.choice(JOBS)
        states = [tools.poll_job(job)["state"] for _ in range(rng.randrange(3, 8))]
        return {"job": job, "states": states}
