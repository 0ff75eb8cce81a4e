"""The URLs of tasks, projects and their boards, runs, and accounts."""

from django.urls import path

from agents.web import account_views, board_views, project_views, run_views, setup_views, task_views
from agents.web.moves import BY_HAND
from agents.web.rounds import views as rounds
from agents.web.setup import VERBS

urlpatterns = [
    path("tasks/<str:ref>/", task_views.task_page, name="task"),
    path("tasks/<str:ref>/events/", task_views.events_page, name="task-events"),
    path("tasks/<str:ref>/diff/", task_views.diff_page, name="task-diff"),
    *(
        path(f"tasks/<str:ref>/{verb}/", task_views.move, {"verb": verb}, name=f"task-{verb}")
        for verb in BY_HAND
    ),
    path("board/", board_views.boards, name="boards"),
    path("projects/<slug:slug>/board/", board_views.board_page, name="board"),
    path("projects/<slug:slug>/", project_views.overview, name="project"),
    path("projects/<slug:slug>/rounds/", rounds.rounds, name="project-rounds"),
    path("projects/<slug:slug>/rounds/<int:number>/", rounds.one_round, name="project-round"),
    path("projects/<slug:slug>/rounds/import/", project_views.import_rounds, name="project-import-rounds"),
    path("projects/<slug:slug>/tasks/import/", project_views.import_tasks, name="project-import"),
    path("projects/<slug:slug>/tasks/followed/", project_views.let_pass, name="project-todo"),
    path("projects/<slug:slug>/setup/", setup_views.setup_page, name="project-setup"),
    path("projects/<slug:slug>/setup/now/", setup_views.progress, name="project-setup-now"),
    *(
        path(f"projects/<slug:slug>/setup/{verb}/", setup_views.act, {"verb": verb}, name=f"project-{verb}")
        for verb in VERBS
    ),
    path("runs/", run_views.runs_page, name="runs"),
    path("runs/<int:pk>/", run_views.run_page, name="run"),
    path("runs/<int:pk>/log/", run_views.run_log, name="run-log"),
    path("runs/<int:pk>/stop/", run_views.stop, name="run-stop"),
    path("accounts/<int:pk>/try/", account_views.try_again, name="account-try"),
]
