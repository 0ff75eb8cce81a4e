"""Where the links of pages lead: to nothing that the person who sees them may not open."""

import re
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client

from tasks.models import Membership
from tests.browser.pages import every_page, fill_scene
from tests.browser.scene import create_scene
from tests.factories import create_user
from tests.steroidsweb.silence import silent

pytestmark = pytest.mark.django_db


def links_of(html: str) -> set[str]:
    """The addresses on this site that a page links to, without the places on them."""
    found = (unescape(href).partition("#")[0] for href in re.findall(r'<a\b[^>]*?\shref="([^"]*)"', html))
    return {href for href in found if href.startswith("/")}


def asked_for(link: str) -> tuple[str, ...]:
    """The page and what is asked of it: whichever value is asked for, the same people may open it."""
    parts = urlsplit(link)
    return parts.path, *sorted({name for name, _ in parse_qsl(parts.query)})


def test_no_link_leads_its_reader_to_a_refusal() -> None:
    scene = create_scene(create_user("lea"))
    fill_scene(scene)
    pages = [*every_page(scene), f"/admin/tasks/project/{scene.ledger.pk}/change/"]
    refused = []
    opened: set[tuple[str, ...]] = set()  # whoever may do more may open it as well: access.txt
    for role in Membership.Role:
        reader, client = create_user(role), Client()
        Membership.objects.create(project=scene.ledger, user=reader, role=role)
        client.force_login(reader)
        answered: dict[tuple[str, ...], int] = {}
        seen: dict[str, str] = {}
        for path in pages:
            page = client.get(path)
            answered[asked_for(path)] = page.status_code
            if page.status_code == 200:
                for link in links_of(page.content.decode()):
                    seen.setdefault(link, path)
        assert len(seen) > 100
        with silent():
            for link in seen:
                asked = asked_for(link)
                if asked not in answered:
                    answered[asked] = 200 if asked in opened else client.get(link).status_code
        opened |= {asked for asked, status in answered.items() if status < 400}
        refused += [(role, link, at) for link, at in seen.items() if answered[asked_for(link)] >= 400]
    assert refused == []
