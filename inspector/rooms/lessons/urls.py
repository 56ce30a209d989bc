"""The routes of the lessons. They need no account."""

from django.urls import path

from inspector.rooms.lessons import playing, views

urlpatterns = [
    path("learn/", views.lessons, name="lessons"),
    path("learn/playground/", playing.playground, name="playground"),
    path("learn/<slug:slug>/", views.lesson, name="lesson"),
    path("learn/<slug:slug>/present/", views.present, name="present"),
]
