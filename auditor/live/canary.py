"""The canary: is what comes back what was sent, up to the limit, and does nothing come back past it?

Sentinels are planted first, so that the pages which decode gives out hold something that must never be seen again. Then
prompts at and over the limit must be refused, and prompts under it must give their own sentinel back. The body decides,
never the status alone: in the incident the answer was HTTP 200 with another tenant's text.
"""

from __future__ import annotations

from collections.abc import Callable

from auditor.live.generation import Api, Reply, generate
from auditor.live.http import Session
from auditor.live.outcome import Result, Status
from auditor.live.prompts import Limits, Probe, Run, Way, find_pieces, find_word, make_prompt
from auditor.live.sentinels import Sentinel, comes_back, foreign, sentinel
from auditor.model.findings import JsonValue
from auditor.model.records import dataclass

ROOM = 48  # tokens of output: a code and its neighbours, and one whole record of a planted prompt
SHORT = 512
OUTPUT_RESERVE = 5  # what the scheduler keeps free for output below the limit
REFUSALS = frozenset({400, 413, 422, 500})  # what refuses a prompt for what it is


@dataclass(frozen=True, slots=True)
class Made:
    """One request that was made, with what it means. The reply's text stays out of every `repr`."""

    probe: Probe
    reply: Reply
    result: Result


def plan(limits: Limits, plants: int, rounds: int = 1) -> tuple[Probe, ...]:
    """The requests of a run, in order. Over-long prompts come right after the planting, before anything else is
    written over what was planted; several `rounds` of them reach several workers behind one front."""
    limit, context = limits.limit, limits.context
    longest = min(limit - 1, limits.edge or limit - 1)

    def under(name: str, length: int) -> Probe:
        return Probe(name, "under", length, max(min(ROOM, limit + OUTPUT_RESERVE - length), 1))

    probes = [Probe(f"plant {number + 1}", "plant", longest, 1) for number in range(plants)]
    # The last but one leaves room for enough output to show whose text it is.
    over = {"limit": limit, "limit + 1": limit + 1, f"context - {ROOM}": context - ROOM, "context - 1": context - 1}
    for number in range(1, rounds + 1):
        seen: set[int] = set()
        for name, length in over.items():
            if length not in seen and limit <= length < context:
                seen.add(length)
                again = f" ({number})" if number > 1 else ""
                # Short enough that the front's own sum of prompt and output fits: it must reach the scheduler.
                probes.append(Probe(name + again, "over", length, max(min(ROOM, context - length), 1)))
    probes.append(under("90 %", longest * 9 // 10))
    probes.append(under("limit - 1", limit - 1))
    if limits.edge is not None and limits.edge < limit - 1:
        probes.append(under("edge limit", limits.edge))
    probes.append(under("short again", min(SHORT, longest // 2)))
    return tuple(probes)


def plants_for(limits: Limits, at_most: int) -> int:
    """How many planting prompts cover the pool of decode once; free pages are handed out in turn, so fewer could leave
    over-long prompts on pages that nobody used."""
    each = max(min(limits.limit - 1, limits.edge or limits.limit - 1), 1)
    wanted = -(-limits.pool // each) if limits.pool is not None else 2
    return max(min(wanted, at_most), 1)


async def find_way(open_session: Session, run: Run, apis: tuple[Api, ...]) -> tuple[Way | None, Made]:
    """The first way of asking on which a short prompt gives its sentinel back: the calibration without which no later
    answer could be judged."""
    pieces = await find_pieces(open_session, run)
    ways: list[Way] = []
    if pieces is not None:
        ways += [Way(api, "tokenizer", pieces) for api in apis if api != "chat"]
    ways += [Way(api, "usage") for api in apis if api != "generate" or pieces is None]
    length = min(SHORT, (run.limits.limit - 1) // 2)
    last: Made | None = None
    for way in ways:
        if way.counted == "usage":
            found = await find_word(open_session, run, way)
            if found is None:
                continue
            way = found
        made = await probe(open_session, run, way, Probe("short", "under", length, ROOM))
        counted = made.reply.prompt_tokens
        if made.reply.status == 200 and counted not in (None, length):
            text = f"{length:,} tokens were sent and {counted:,} counted: lengths cannot be trusted to the token"
            return None, Made(made.probe, made.reply, Result("short", "undecided", text, "short", made.result.data))
        if made.result.status == "pass":
            return way, made
        last = made
        if made.reply.status is None or made.reply.status in (401, 403, 429):
            break
    if last is None:
        text = "prompt lengths cannot be counted: no /tokenize that answers, and no usage figures that add up"
        return None, Made(
            Probe("short", "under", length, ROOM), Reply(None), Result("short", "undecided", text, "short")
        )
    text = f"no answer can be judged: a short prompt does not give its sentinel back ({last.result.message})"
    status: Status = "fail" if last.result.id == "foreign" else "undecided"
    return None, Made(last.probe, last.reply, Result(last.result.id, status, text, "short", last.result.data))


async def probe(open_session: Session, run: Run, way: Way, asked: Probe) -> Made:
    """Make one request and judge what comes back."""
    own = sentinel(run.seed, f"{way.api}/{way.counted}/{asked.name}")
    prompt, length = await make_prompt(open_session, run, way, asked, own)
    if prompt is None:
        text = f"a prompt of {asked.length:,} tokens cannot be made"
        return Made(asked, Reply(None), Result(_id(asked), "undecided", text, asked.name))
    run.say(f"{asked.name}: {length:,} tokens")
    reply = await generate(open_session, run.place.front, way.api, run.place.model, prompt, asked.room)
    result = judge(asked, own, tuple(run.sentinels), reply, run.limits, way.api)
    run.sentinels.append(own)
    return Made(asked, reply, result)


def judge(
    asked: Probe, own: Sentinel, sent: tuple[Sentinel, ...], reply: Reply, limits: Limits, api: Api = "completions"
) -> Result:
    """What one reply means. `sent` are the sentinels of all prompts before it."""
    data: dict[str, JsonValue] = {
        "length": asked.length,
        "http_status": reply.status,
        "prompt_tokens": reply.prompt_tokens,
        "sha256": reply.digest,
    }

    def result(status: Status, message: str, identifier: str = "") -> Result:
        return Result(identifier or _id(asked), status, f"{asked.length:,} tokens: {message}", asked.name, data)

    if reply.status is None:
        return result("undecided", reply.failure or "no answer")
    stray = foreign(reply.text + "\n" + reply.body, own, sent)
    if stray:
        names = ", ".join(other.name.rsplit("/", 1)[-1] for other in stray)
        text = f"HTTP {reply.status} with text of another prompt ({names}): pages of one request reach another"
        return result("fail", text, "foreign")
    if asked.kind == "over":
        return _judge_over(reply, result)
    return _judge_under(asked, own, reply, limits, api, result)


def _judge_over(reply: Reply, result: Callable[[Status, str], Result]) -> Result:
    status = reply.status or 0
    if status < 400:
        return result("fail", f"must be refused, but was answered with HTTP {status}")
    if status in REFUSALS:
        return result("pass", f"refused with HTTP {status}")
    return result("undecided", f"HTTP {status} is no refusal of a prompt for its length")


def _judge_under(
    asked: Probe, own: Sentinel, reply: Reply, limits: Limits, api: Api, result: Callable[[Status, str], Result]
) -> Result:
    status = reply.status or 0
    over_edge = limits.edge is not None and asked.length > limits.edge
    if status in (400, 413, 422):
        if over_edge:
            return result("pass", f"refused at the front with HTTP {status}, as its limit says")
        hint = "" if limits.edge is not None else "; if the front has a limit of its own, name it with --edge-limit"
        return result("undecided", f"refused with HTTP {status} although it is under the limit{hint}")
    if status >= 300 or status < 200:
        return result("undecided", f"HTTP {status}")
    if over_edge:
        return result("fail", f"HTTP {status}: longer than the front's limit of {limits.edge:,}, and let through")
    if asked.kind == "plant":
        return result("pass", "planted")
    if reply.prompt_tokens is not None and reply.prompt_tokens < asked.length:
        return result("fail", f"cut to {reply.prompt_tokens:,} tokens without a word")
    if reply.prompt_tokens is not None and reply.prompt_tokens > asked.length:
        return result("undecided", f"the engine counts {reply.prompt_tokens:,}: something adds tokens on the way")
    if comes_back(reply.text, own, asked.room):
        return result("pass", "its sentinel came back")
    if api == "chat" and asked.room < ROOM and reply.text.strip():
        # A chat model spends so few tokens on a courtesy; the probe at 90 % has judged the content.
        return result("note", f"answered, nothing foreign in it; {asked.room} tokens of room are too few for a code")
    return result("fail", f"HTTP {status} without its sentinel: what was read is not what was sent")


def _id(asked: Probe) -> str:
    return {"plant": "plant", "under": "under-limit", "over": "over-limit"}[asked.kind]
