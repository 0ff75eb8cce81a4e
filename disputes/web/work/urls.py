"""The paths of the pages about a task's rounds and a project's end."""

from django.urls import path

from disputes.api import rollbacks
from disputes.web.work import comment_views, ending_views, rollback_views

api_urlpatterns = [
    path("tasks/<str:ref>/rollback/", rollbacks.RollbackView.as_view()),
    path("tasks/<str:ref>/reapply/", rollbacks.ReapplyView.as_view()),
    path("tasks/<str:ref>/revert/", rollbacks.RevertView.as_view()),
]
urlpatterns = [
    path("tasks/<str:ref>/rollback/", rollback_views.rollback, name="task-rollback"),
    path("tasks/<str:ref>/rulings/<int:pk>/again/", rollback_views.reapply, name="task-reapply"),
    path("tasks/<str:ref>/revert/", rollback_views.revert, name="task-revert"),
    path("tasks/<str:ref>/comments/", comment_views.on_task, name="task-comment"),
    path("projects/<slug:slug>/comments/", comment_views.on_project, name="project-comment"),
    path("comments/<int:pk>/settle/", comment_views.resolve, name="comment-settle"),
    path("projects/<slug:slug>/end/", ending_views.ending, name="project-end"),
    path("projects/<slug:slug>/finish/", ending_views.finish, name="project-finish"),
    path("projects/<slug:slug>/extend/", ending_views.extend, name="project-extend"),
    path("projects/<slug:slug>/resume/", ending_views.resume, name="project-resume"),
]
