from django.apps import apps
from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.routers import DefaultRouter

from agents.api.hosts import HostViewSet
from agents.api.reading import AgentViewSet, RunViewSet
from disputes.api.amendments import AmendmentViewSet, DisputedWorkViewSet
from disputes.api.disputes import DisputeViewSet
from disputes.web.work.urls import api_urlpatterns
from steroidsweb.accounts import sessions
from steroidsweb.accounts.invitations import invited
from steroidsweb.accounts.sign_in import sign_in
from steroidsweb.errors import not_found
from steroidsweb.health import healthz
from steroidsweb.metrics import metrics
from tasks.api import ProjectViewSet, TaskViewSet

router = DefaultRouter()
router.include_root_view = router.include_format_suffixes = False
router.register("projects", ProjectViewSet, basename="project")
router.register("tasks", TaskViewSet, basename="task")
router.register("runs", RunViewSet, basename="run")
router.register("hosts", HostViewSet, basename="host")
router.register("agents", AgentViewSet, basename="agent")
router.register("disputes", DisputeViewSet, basename="dispute")
router.register("amendments", AmendmentViewSet, basename="amendment")
router.register("disputed-work", DisputedWorkViewSet, basename="disputed-work")

admin.autodiscover()

handler400 = "steroidsweb.errors.bad_request"
handler500 = "steroidsweb.errors.server_error"

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index"), name="home"),
    path("healthz", healthz, name="healthz"),
    path("metrics", metrics, name="metrics"),
    path("sessions/", sessions.sessions, name="sessions"),
    path("sessions/end-others/", sessions.end_others, name="sessions-end-others"),
    path("sessions/<int:pk>/end/", sessions.end, name="session-end"),
    path("invited/<str:signed>/", invited, name="invited"),
    path("admin/login/", sign_in, name="account_login"),  # must come before admin.site.urls
    path("admin/", admin.site.urls),
    path(
        "api/v1/",
        include(
            [
                path("", include("agents.api.urls")),
                path("", include(api_urlpatterns)),
                path("", include(router.urls)),
            ]
        ),
    ),
    path("api/v1/<path:path>", not_found),
    path("api/v1/", not_found),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path(
        "api/docs/",
        SpectacularSwaggerSplitView.as_view(url_name="schema", authentication_classes=[]),
        name="api-docs",
    ),
    path("queue/", include("disputes.web.dispute.urls")),
    path("notifications/", include("disputes.notifications.urls")),
    path("insights/", include("disputes.web.insights.urls")),
    path("", include("disputes.web.work.urls")),
    path("", include("agents.web.urls")),
]

if apps.is_installed("allauth"):
    urlpatterns += [path("account/", include("steroidsweb.accounts.urls"))]

handler403 = "steroidsweb.error_pages.not_allowed"
handler404 = "steroidsweb.error_pages.not_found"
