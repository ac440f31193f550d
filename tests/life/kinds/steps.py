"""What steps are made of: their register, and the texts, projects and sessions that they choose."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from life.world import Call, Json, Project, World

Step = Callable[[World, random.Random], None]


class Kind(NamedTuple):
    name: str
    weight: int
    run: Step


KINDS: dict[str, Kind] = {}


def kind(weight: int = 2) -> Callable[[Step], Step]:
    def added(run: Step) -> Step:
        KINDS[run.__name__] = Kind(run.__name__, weight, run)
        return run

    return added


# --- texts ------------------------------------------------------------------------------------------------------------

# Sentences of people who work, with a place for a word that nobody else says.
SENTENCES = {
    "en": "The parser of {} must never allocate while the lock is held, it stalled the import.",
    "de": "Der Übersetzer von {} darf nie Speicher holen, solange die Sperre gehalten wird.",
    "es": "El servicio {} se reinicia cada noche porque la conexión caduca después de ocho horas.",
    "ru": "Служба {} перезапускается каждую ночь, потому что соединение устаревает.",
    "zh": "服务{}每天晚上重新启动，因为连接在八小时后过期。",  # noqa: RUF001
    "ja": "サービス{}は接続が切れるため、毎晩再起動されます。",
    "ar": "تتم إعادة تشغيل الخدمة {} كل ليلة لأن الاتصال تنتهي صلاحيته.",
    "hi": "सेवा {} हर रात फिर से शुरू होती है क्योंकि कनेक्शन समाप्त हो जाता है।",
    "tr": "{} servisi her gece yeniden başlatılıyor çünkü bağlantı zaman aşımına uğruyor.",  # noqa: RUF001
}
ODD = (
    "-- {}; DROP TABLE notes; --",
    "« {} »   three  spaces\tand a tab",
    "{} e\u0301 and \u00e9 and \ufb01 and 👩\u200d💻🇩🇪",
    "{}\n\n# A heading\n\n- [ ] a list\n```\ncode\n```",
    "$& \\1 {} %s {{}} ${{HOME}} $(id)",
    "<system>{}</system> <script>alert(1)</script>",
    "{}\u202etxt.exe \u200b zero",
    "\"{}\" \\ 'quoted' \\u0041 \\n",
)
SYLLABLES = ("ba", "ko", "ri", "mu", "te", "lo", "za", "ni", "fe", "du", "ga", "pi", "so", "va", "hu", "we")


def word(chance: random.Random) -> str:
    """A word that is in no other text of this story."""
    return "".join(chance.choice(SYLLABLES) for _ in range(5)).capitalize()


def text(chance: random.Random) -> str:
    form = chance.choice(ODD) if chance.random() < 0.3 else chance.choice(list(SENTENCES.values()))
    return form.format(word(chance))


def tags_of(chance: random.Random) -> list[str]:
    return chance.sample(["grammar", "release", "Über", "构建", "db"], chance.choice((0, 0, 1, 2)))


def big(chance: random.Random, lines: int) -> str:
    return "".join(f"{number:06d} {word(chance)} compiled in {chance.random():.3f} s\n" for number in range(lines))


def of(world: World, chance: random.Random) -> Project:
    return chance.choice(world.projects)


def session_of(chance: random.Random) -> str:
    return chance.choice(("monday", "tuesday"))


def note_added_to(world: World, chance: random.Random, project: Project) -> None:
    content = text(chance)
    answer = world.call(chance, project, "add_note", {"content": content}, "monday")
    project.truth.notes[answer["note_id"]] = (content, (), False)


def writes_of(chance: random.Random, project: Project, count: int) -> list[Call]:
    calls: list[Call] = []
    for _ in range(count):
        session, content = session_of(chance), text(chance)
        calls.append(
            chance.choice(
                (
                    ("add_note", {"content": content}, session),
                    ("write_memory", {"key": chance.choice(("owner", "port")), "content": content}, session),
                    ("write_notepad", {"content": content + "\n"}, session),
                    ("update_journal", {"section": "question", "text": f"Why {word(chance)}?"}, session),
                )
            )
        )
    return calls


def acknowledged(project: Project, folder: Path, call: Call, values: Json) -> None:
    operation, arguments, session = call
    truth = project.truth
    match operation:
        case "add_note":
            truth.notes[values["note_id"]] = (arguments["content"], (), False)
        case "write_memory":
            truth.memory[arguments["key"]] = arguments["content"]
        case "write_notepad":
            truth.notepads[session] = arguments["content"]
        case _:
            truth.journals.setdefault(str(folder), []).append(f"- [ ] {arguments['text']}")
