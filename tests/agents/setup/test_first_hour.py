"""What `start` asks of whoever brings a list of tasks."""

from pathlib import Path

import pytest

from agents.setup.asking import Asker
from agents.setup.first_hour import tasks
from tasks.models import Project


@pytest.mark.django_db
def test_a_list_without_boxes_is_taken_if_its_owner_says_so(
    ledger: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, said, asked = tmp_path / "TODO.md", [], []
    file.write_text("- Say what it does\n- Say how\n")
    answers = iter([str(file), "", str(file), "y"])
    monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or next(answers))
    tasks(Asker({}, said.append, never=False), ledger)
    assert sum("Take 2 lines that may be meant so for tasks?" in question for question in asked) == 2
    assert "2 created" in said[-1]
    assert [task.title for task in ledger.tasks.all()] == ["Say what it does", "Say how"]
