from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("api/", include("chatmemory.api.urls")),
    path("", include("inspector.urls")),
]

handler400 = "inspector.views.errors.bad_request"
handler500 = "inspector.views.errors.server_error"
