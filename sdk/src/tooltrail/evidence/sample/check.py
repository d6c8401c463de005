"""Checks an auditor's sample in a bundle: population, seed, selection, conclusions, sign-offs."""

from collections.abc import Iterator, Mapping

import msgspec

from tooltrail.evidence.layout import EntryLine
from tooltrail.evidence.sample.acts import (
    Acts,
    Committed,
    Concluded,
    Drawn,
    Entry,
    Fixed,
    Returned,
    Signed,
)
from tooltrail.evidence.sample.attributes import (
    SIZE_MAX,
    NoSizeError,
    size_for,
    upper_limit,
)
from tooltrail.evidence.sample.layout import (
    ERRORS,
    SampleFile,
    conclusions_digest,
    texts_digest,
)
from tooltrail.evidence.sample.population import Population
from tooltrail.evidence.sample.selection import (
    commitment_of,
    draw,
    population_digest,
    seed_of,
    selection_digest,
)
from tooltrail.evidence.verdict import Check
from tooltrail.evidence.witnessed import Policy
from tooltrail.ledger import LedgerError, parse_note
from tooltrail.ledger.cosignature import WitnessKey, cosigned_by
from tooltrail.ledger.lines import shown

_STEERABLE = "The operator of the server could have steered which calls were drawn: "
_NO_NONCE = "no nonce of an auditor is in the seed"
_UNCHECKED = "no signature of a witness was checked (--witness)"
_UNWITNESSED = "too few of your witnesses signed the ledger between the population and the draw"
_OF_QUERY = (
    "That the population has all calls of its query, and no others, is stated by the server. "
    "Compare the query with the calls in the bundle."
)


class SampleCheck:
    """The checks of one sample. `note` and `note_action` come before `finish`."""

    def __init__(self, file: SampleFile, population: bytes) -> None:
        self._file = file
        self._population_check = Check("population")
        self._seed = Check("seed")
        self._selection = Check("selection")
        self._signed = Check("sign-offs")
        self._population = Population(population, self._population_check)
        self._acts = Acts(str(file.id))
        self._steered: list[str] = []
        self.is_undecided = False
        """Whether the checkpoint in the seed is not in the bundle."""

    @property
    def checks(self) -> list[Check]:
        """In the order in which they are shown."""
        return [self._population_check, self._seed, self._selection, self._signed]

    @property
    def limits(self) -> Iterator[str]:
        """What the bundle does not show of the sample."""
        if self._steered:
            yield f"{_STEERABLE}{'; '.join(self._steered)}."
        yield _OF_QUERY

    def note(self, lines: list[EntryLine]) -> None:
        """Note the next entries of the bundle's range."""
        self._population.note(lines)

    def note_action(self, index: int, raw: bytes) -> None:
        """Note a proved entry of kind action."""
        self._acts.note(index, raw)

    def finish(
        self, notes: Mapping[int, bytes], roots: Mapping[int, bytes], policy: Policy | None
    ) -> None:
        """Check it, after all entries were noted.

        `notes` and `roots` are those of the bundle's checkpoints, by size.
        """
        self._population.end()
        committed = self._one(Committed, "was begun", self._population_check)
        fixed = self._one(Fixed, "has this population", self._population_check)
        drawn = self._one(Drawn, "was drawn", self._selection)
        if committed is not None:
            self._check_commitment(committed)
        if fixed is not None:
            self._check_population(fixed, committed)
        if committed is not None and fixed is not None and drawn is not None:
            self._check_seed(committed, fixed, drawn, roots)
            self._check_steering(drawn, notes, policy)
            self._check_selection(fixed, drawn)
            self._check_conclusions(drawn)
            self._check_signatures()
        else:
            self._seed.skip("entries about the sample are missing")
            self._signed.skip("entries about the sample are missing")

    def _one[A: msgspec.Struct](self, form: type[A], what: str, check: Check) -> Entry[A] | None:
        entries = self._acts.of(form)
        if not entries:
            check.fail(f"no entry of the ledger says that the sample {what}")
            return None
        if len(entries) > 1:
            check.fail(f"{len(entries)} entries of the ledger say that the sample {what}")
        return entries[0]

    def _check_commitment(self, committed: Entry[Committed]) -> None:
        if committed.facts.definition != self._file.definition.digest:
            self._population_check.fail(
                "its query, its size or its name is not what was on record before"
            )

    def _check_population(self, fixed: Entry[Fixed], committed: Entry[Committed] | None) -> None:
        check, facts = self._population_check, fixed.facts
        if population_digest(self._population.data).hex() != facts.population:
            check.fail("it is not the population that was fixed")
        if facts.calls != len(self._population):
            check.fail(f"{facts.calls:,} calls were fixed, and it has {len(self._population):,}")
        indexes = self._population.indexes
        if indexes and indexes[-1] >= facts.ledger_size:
            check.fail("it has calls that came after it was fixed")
        if committed is None or not committed.index < facts.ledger_size <= fixed.index:
            check.fail("it was not fixed after the sample was begun")
        check.message = (
            f"{facts.calls:,} calls, fixed when the ledger had {facts.ledger_size:,} entries;"
            f" {len(self._population.others):,} other calls in the bundle are not in it"
        )

    def _check_seed(
        self,
        committed: Entry[Committed],
        fixed: Entry[Fixed],
        drawn: Entry[Drawn],
        roots: Mapping[int, bytes],
    ) -> None:
        check, file, facts = self._seed, self._file, drawn.facts
        size, root = file.checkpoint_size, file.checkpoint_root
        if (facts.nonce, facts.checkpoint_size, facts.checkpoint_root) != (
            file.nonce,
            size,
            root.hex(),
        ):
            check.fail("nonce and checkpoint are not those of the draw")
        if committed.facts.commitment and not file.nonce:
            check.fail("the auditor committed to a nonce, and none is in the seed")
        elif file.nonce and commitment_of(file.nonce) != committed.facts.commitment:
            check.fail("the nonce is not the one that the auditor committed to")
        if not fixed.index < size <= drawn.index:
            check.fail("the checkpoint is not one between the population and the draw")
        if earlier := [each for each in roots if fixed.index < each < size]:
            check.fail(f"the checkpoint of {min(earlier):,} entries came first")
        digest = population_digest(self._population.data)
        if seed_of(digest, file.nonce, root).hex() != facts.seed:
            check.fail("it is not the seed that was used")
        if size not in roots:
            self.is_undecided = True
            check.skip(
                f"the bundle has no checkpoint of {size:,} entries: the ledger was restarted since"
            )
            return
        if roots[size] != root:
            check.fail("the checkpoint has another root")
        check.message = "it follows from population, nonce and checkpoint, each on record before"

    def _check_steering(
        self, drawn: Entry[Drawn], notes: Mapping[int, bytes], policy: Policy | None
    ) -> None:
        """Say whether the operator of the server could have chosen the seed."""
        check, file = self._seed, self._file
        sizes = range(file.checkpoint_size, drawn.index + 1)
        between = {size: note for size, note in notes.items() if size in sizes}
        self._steered = [
            *([] if file.nonce else [_NO_NONCE]),
            *([_UNCHECKED] if policy is None else []),
            *([_UNWITNESSED] if policy and not _is_witnessed(policy, between) else []),
        ]
        if self._steered and check.is_checked:
            check.message = f"it can be repeated, but {_STEERABLE[0].lower()}{_STEERABLE[1:]}"
            check.message += "; ".join(self._steered)

    def _check_selection(self, fixed: Entry[Fixed], drawn: Entry[Drawn]) -> None:
        check, definition = self._selection, self._file.definition
        calls, facts = len(self._population), drawn.facts
        indexes = [call.index for call in self._file.calls]
        size = fixed.facts.size
        try:
            if definition.plan is None:
                wanted = min(definition.size or 0, calls)
            elif definition.plan.problem:
                raise NoSizeError(definition.plan.problem)
            else:
                wanted, _ = size_for(definition.plan, calls)
        except NoSizeError as error:
            check.fail(str(error))
        else:
            if size != wanted:
                check.fail(f"{wanted:,} calls should have been drawn, and {size:,} were")
        try:
            seed = bytes.fromhex(facts.seed)
        except ValueError:
            seed = b""
        if draw(seed, self._population.indexes, min(size, SIZE_MAX)) != indexes:
            check.fail("the calls are not those that the seed draws")
        if selection_digest(indexes) != facts.selection:
            check.fail("the calls are not those that were drawn")
        check.message = f"the seed draws these {size:,} of {calls:,} calls"

    def _check_conclusions(self, drawn: Entry[Drawn]) -> None:
        """Compare each conclusion with the last entry about it."""
        last = {
            entry.facts.index: entry
            for entry in self._acts.of(Concluded)
            if entry.index > drawn.index
        }
        for call in self._file.calls:
            entry = last.get(call.index)
            facts = ("", "") if entry is None else (entry.facts.conclusion, entry.facts.texts)
            if (call.conclusion, call.texts) != facts:
                self._signed.fail(f"the conclusion about entry {call.index:,} is not on record")
            if call.note is None or call.exception is None or call.salt is None:
                if call.texts and call.index not in self._population.erased:
                    self._signed.fail(
                        f"the texts about entry {call.index:,} are missing, and it is not erased"
                    )
            elif call.texts and texts_digest(call.note, call.exception, call.salt) != call.texts:
                self._signed.fail(f"the texts about entry {call.index:,} were changed")

    def _check_signatures(self) -> None:
        check, calls = self._signed, self._file.calls
        returned = max((entry.index for entry in self._acts.of(Returned)), default=-1)
        signed = [entry for entry in self._acts.of(Signed) if entry.index > returned]
        prepared = [entry for entry in signed if entry.facts.part == "prepared"]
        reviewed = [entry for entry in signed if entry.facts.part == "reviewed"]
        open_count = sum(not call.conclusion for call in calls)
        if not prepared:
            check.skip(f"nobody has signed; {open_count:,} calls have no conclusion")
            return
        digest = conclusions_digest((call.index, call.conclusion, call.texts) for call in calls)
        errors = sum(call.conclusion in ERRORS for call in calls)
        confidence = self._file.definition.confidence or 9_500
        try:
            limit = upper_limit(confidence, errors, len(calls), len(self._population))
        except ValueError:
            limit = -1
        for entry in (*prepared, *reviewed):
            who = shown(entry.actor)
            if entry.facts.conclusions != digest:
                check.fail(f"{who} signed other conclusions")
            if (entry.facts.errors, entry.facts.upper_limit) != (errors, limit):
                check.fail(f"{who} signed other figures of errors")
        if open_count:
            check.fail(f"it is signed, and {open_count:,} calls have no conclusion")
        if any(entry.index > prepared[0].index for entry in self._acts.of(Concluded)):
            check.fail("a conclusion was changed after it was signed")
        if len(prepared) > 1 or len(reviewed) > 1:
            check.fail("it was signed more than once in the same part")
        figures = f"{errors:,} errors in {len(calls):,} calls, at most {limit:,} in the population"
        if not reviewed:
            check.skip(f"signed by {shown(prepared[0].actor)} alone; {figures}")
            return
        first, second = prepared[0], reviewed[0]
        if first.facts.person == second.facts.person or first.actor == second.actor:
            check.fail("the same person signed twice")
        if second.index < first.index:
            check.fail("it was reviewed before it was prepared")
        check.message = (
            f"prepared by {shown(first.actor)}, reviewed by {shown(second.actor)}: {figures}"
        )


def _is_witnessed(policy: Policy, notes: Mapping[int, bytes]) -> bool:
    """Whether enough witnesses signed one of these checkpoints."""
    signed: set[WitnessKey] = set()
    for note in notes.values():
        try:
            signed.update(cosigned_by(*parse_note(note), policy.witnesses))
        except LedgerError:  # another check reports it
            continue
    return len(signed) >= policy.needed
