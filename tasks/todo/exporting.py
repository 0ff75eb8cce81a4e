"""Exporting rows as TODO.md."""

from tasks.models import Project
from tasks.todo import format
from tasks.todo.format import TodoFile, TodoSection
from tasks.todo.outline import Outline, as_item


def export_todo(project: Project) -> str:
    """Return the project's sections and tasks as a file that names every task by its ref."""
    outline = Outline(project)
    names, entries = outline.places_by_name(), outline.entries_by_place()
    sections = [
        TodoSection(
            title=place.title,
            level=place.level,
            after=tuple(
                needed.title if len(names[needed.title]) == 1 else needed.path for needed in place.after
            ),
            body=format.as_section_text(place.row.body),
            tasks=tuple(as_item(entry) for entry in entries[place]),
        )
        for place in outline.places
    ]
    preamble = f"# {format.as_line(project.name)}\n\n{format.as_section_text(project.preamble)}"
    return format.render(TodoFile(preamble.strip(), tuple(sections)))
