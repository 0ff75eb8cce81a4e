"""Where the links of pages lead: to nothing that the person who sees them may not open."""

import re
from html import unescape

import pytest
from django.test import Client

from tasks.models import Membership
from tests.browser.pages import every_page, fill_scene
from tests.browser.scene import create_scene
from tests.factories import create_user

pytestmark = pytest.mark.django_db


def links_of(html: str) -> set[str]:
    """The addresses on this site that a page links to, without the places on them."""
    found = (unescape(href).partition("#")[0] for href in re.findall(r'<a\b[^>]*?\shref="([^"]*)"', html))
    return {href for href in found if href.startswith("/")}


@pytest.mark.parametrize("role", Membership.Role)
def test_no_link_leads_its_reader_to_a_refusal(role: Membership.Role) -> None:
    scene = create_scene(create_user("lea"))
    fill_scene(scene)
    reader = create_user("vera")
    Membership.objects.create(project=scene.ledger, user=reader, role=role)
    client = Client()
    client.force_login(reader)
    pages = [*every_page(scene), f"/admin/tasks/project/{scene.ledger.pk}/change/"]
    answered: dict[str, int] = {}
    seen: dict[str, str] = {}
    for path in pages:
        page = client.get(path)
        answered[path] = page.status_code
        if page.status_code == 200:
            for link in links_of(page.content.decode()):
                seen.setdefault(link, path)
    assert len(seen) > 100
    for link in seen.keys() - answered.keys():
        answered[link] = client.get(link).status_code
    assert {link: at for link, at in seen.items() if answered[link] >= 400} == {}
