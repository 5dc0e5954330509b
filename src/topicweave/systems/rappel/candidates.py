"""Who might be a friend: heard of in gossip, ranked by votes (Rappel §3.1.3, §3.3).

Rules kept
----------
1. A node that is named in a ping or ack gets a vote, each time. So do tree neighbours, when they are heard of.
2. There are at most `most` candidates. The one not heard of for the longest makes room. A candidate not heard of
   for `memory` seconds goes, too.
3. The unaudited candidate with the most votes is next; on a change of friends all votes and audits are
   forgotten. A node that denied friendship is not asked again for `DENIED` seconds: otherwise nodes in want of
   friends would ask the same few popular ones over and over.

Theory of operation: neighbours say the same list again and again. So a list that comes again is only counted,
once, in its *voice*; the votes are added up when somebody asks for the next candidate. That is what makes a
ping cheap. Candidates stand in the order in which they were heard of; one that is due to make room but named
by a voice that is still heard goes to the end instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from topicweave.model.ids import NodeId

DENIED = 120.0


class _Candidate:
    __slots__ = ("audited", "closed_until", "heard", "votes")

    def __init__(self, now: float) -> None:
        self.votes = 1
        self.audited = False
        self.heard = now
        self.closed_until = 0.0


class _Voice:
    __slots__ = ("heard", "names", "rounds")

    def __init__(self, names: tuple[NodeId, ...], now: float) -> None:
        self.names = names
        self.rounds = 0
        self.heard = now


class Candidates:
    """The candidates set of one node."""

    def __init__(self, own: NodeId, most: int, memory: float, forgotten: Callable[[NodeId], None]) -> None:
        self._own = own
        self._most = most
        self._memory = memory
        self._forgotten = forgotten
        self._known: dict[NodeId, _Candidate] = {}
        self._voices: dict[NodeId, _Voice] = {}
        self._named: dict[NodeId, int] = {}  # by how many voices
        self._maybe_next = False  # whether some candidate may be unaudited

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[NodeId]:
        return iter(self._known)

    def __contains__(self, peer: NodeId) -> bool:
        return peer in self._known

    def votes(self, peer: NodeId) -> int:
        self._add_up()
        return self._known[peer].votes if peer in self._known else 0

    def hear_list(self, speaker: NodeId, names: tuple[NodeId, ...], now: float) -> None:
        """A neighbour named its friends."""
        voice = self._voices.get(speaker)
        if voice is not None:
            if voice.names is names or voice.names == names:
                voice.rounds += 1
                voice.heard = now
                return
            self._silence(speaker)
        names = names[: self._most]
        self._voices[speaker] = _Voice(names, now)
        named = self._named
        for peer in names:
            named[peer] = named.get(peer, 0) + 1
            self.hear(peer, now)

    def hear(self, peer: NodeId, now: float) -> None:
        """A peer was named, or spoke itself."""
        known = self._known
        candidate = known.pop(peer, None)
        if candidate is not None:
            candidate.votes += 1
            candidate.heard = now
            known[peer] = candidate
            return
        if peer == self._own:
            return
        if len(known) >= self._most:
            self._make_room()
        known[peer] = _Candidate(now)
        self._maybe_next = True

    def _make_room(self) -> None:
        known, named = self._known, self._named
        for _ in range(len(known)):
            eldest = next(iter(known))
            if eldest not in named:
                break
            known[eldest] = known.pop(eldest)
        self.drop(next(iter(known)))

    def next(self, friends: Iterable[NodeId], now: float) -> NodeId | None:
        """Whom to audit: from now on it counts as audited."""
        if not self._maybe_next:
            return None
        self._add_up()
        taken = set(friends)
        best, best_votes = None, -1
        for peer, candidate in self._known.items():
            if (
                not candidate.audited
                and candidate.votes > best_votes
                and candidate.closed_until <= now
                and peer not in taken
            ):
                best, best_votes = peer, candidate.votes
        if best is None:
            self._maybe_next = False
        else:
            self._known[best].audited = True
        return best

    def denied(self, peer: NodeId, now: float) -> None:
        """It has no room for a fan."""
        if peer in self._known:
            self._known[peer].closed_until = now + DENIED

    def reset(self) -> None:
        """The friends changed: everybody may be audited again."""
        for candidate in self._known.values():
            candidate.audited = False
            candidate.votes = 0
        for voice in self._voices.values():
            voice.rounds = 0
        self._maybe_next = bool(self._known)

    def drop(self, peer: NodeId) -> None:
        if self._known.pop(peer, None) is not None:
            self._forgotten(peer)

    def lost(self, peer: NodeId) -> None:
        """A peer is gone: neither a candidate nor heard any more."""
        self.drop(peer)
        if peer in self._voices:
            self._silence(peer)

    def sweep(self, now: float) -> None:
        """Let go of what is too old."""
        limit = now - self._memory
        for speaker in [one for one, voice in self._voices.items() if voice.heard < limit]:
            self._silence(speaker)
        # In the order of when they were heard, except for those named all the time.
        stale = []
        for peer, candidate in self._known.items():
            if candidate.heard >= limit:
                break
            if peer not in self._named:
                stale.append(peer)
        for peer in stale:
            self.drop(peer)

    def _silence(self, speaker: NodeId) -> None:
        """What a speaker said is past: its votes count, its names are named once less."""
        voice = self._voices.pop(speaker)
        self._count(voice)
        named = self._named
        for peer in voice.names:
            if named[peer] == 1:
                del named[peer]
            else:
                named[peer] -= 1

    def _add_up(self) -> None:
        for voice in self._voices.values():
            self._count(voice)

    def _count(self, voice: _Voice) -> None:
        rounds = voice.rounds
        if rounds:
            voice.rounds = 0
            known = self._known
            for peer in voice.names:
                candidate = known.get(peer)
                if candidate is not None:
                    candidate.votes += rounds
                    candidate.heard = voice.heard
