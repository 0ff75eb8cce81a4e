"""Middleware for TLS, the headers of every answer, the methods that pages accept, and the size of requests.

Even a text of an agent that got past escaping would not run, because pages load scripts only from this host's
files.
"""

from collections.abc import Callable
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.request import split_domain_port

from steroidsweb.errors import TOO_LARGE, bare

GetResponse = Callable[[HttpRequest], HttpResponse]

# The two exceptions are for unfold: its Alpine makes functions from attributes of the templates, and a few of
# its components have a width in style="". Neither allows a <script>, an on…= attribute or a <style>.
PAGE = {
    "default-src": "'none'",
    "script-src": "'self' 'unsafe-eval'",
    "style-src": "'self'",
    "style-src-attr": "'unsafe-inline'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
    "object-src": "'none'",
}
# JSON, CSV, Markdown, files: nothing in them is a page.
DATA = {"default-src": "'none'", "form-action": "'none'", "frame-ancestors": "'none'", "base-uri": "'none'"}
POLICIES = {
    kind: "; ".join(f"{directive} {sources}" for directive, sources in policy.items())
    for kind, policy in {"page": PAGE, "data": DATA}.items()
}

UNUSED_FEATURES = (
    "accelerometer", "camera", "display-capture", "geolocation", "gyroscope", "magnetometer", "microphone",
    "midi", "payment", "screen-wake-lock", "serial", "usb", "xr-spatial-tracking",
)  # fmt: skip
PERMISSIONS = ", ".join(f"{feature}=()" for feature in UNUSED_FEATURES)

API = "/api/v1/"
PAGE_METHODS = ("GET", "HEAD", "POST")


def tls(get_response: GetResponse) -> GetResponse:
    """Count a request as one over HTTPS if it asks for the host of an STEROIDS_URL that begins so.

    The proxy speaks plain HTTP with us and need not say what the browser speaks with it. Without this, Django
    would not send HSTS, and the addresses in answers would begin with http.
    """
    own = urlsplit(settings.URL)
    host = split_domain_port(own.netloc)[0]

    def middleware(request: HttpRequest) -> HttpResponse:
        asked = split_domain_port(request.META.get("HTTP_HOST", ""))[0]
        if own.scheme == "https" and asked == host:
            request.META["wsgi.url_scheme"] = "https"
        return get_response(request)

    return middleware


def headers(get_response: GetResponse) -> GetResponse:
    """Set Content-Security-Policy and Permissions-Policy, and keep answers out of every cache.

    Only the files of pages may be kept; they say so. Django's own middleware sets the other headers.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        is_page = response.headers.get("Content-Type", "").startswith("text/html")
        response.headers.setdefault("Content-Security-Policy", POLICIES["page" if is_page else "data"])
        response.headers.setdefault("Permissions-Policy", PERMISSIONS)
        response.headers.setdefault("Cache-Control", "no-store, private")
        return response

    return middleware


def methods(get_response: GetResponse) -> GetResponse:
    """Answer 405 to methods that no form sends, which a view that checks only for POST takes for a GET."""

    def middleware(request: HttpRequest) -> HttpResponse:
        if request.method not in PAGE_METHODS and not request.path.startswith(API):
            return HttpResponseNotAllowed(PAGE_METHODS)
        return get_response(request)

    return middleware


def sizes(get_response: GetResponse) -> GetResponse:
    """Answer 413 to a body above the limit, by its declared length, before anything reads it.

    Django's own limit leaves out files, which it would store on disk even for users who are not signed in. A
    body without a length counts as empty for Django. Bundles have a limit of their own, checked after the
    token.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        said = request.META.get("CONTENT_LENGTH") or "0"
        is_bundle = request.path.startswith(f"{API}pull/runs/") and request.path.endswith("/bundle/")
        is_sound = said.isascii() and said.isdigit() and len(said) < 20
        if is_bundle or (is_sound and int(said) <= settings.DATA_UPLOAD_MAX_MEMORY_SIZE):
            return get_response(request)
        return bare(request, "Nothing was done", TOO_LARGE)

    return middleware
