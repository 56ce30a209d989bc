from django.contrib.admin.apps import AdminConfig


class Admin(AdminConfig):
    default_site = "inspector.project.admin_site.AdminSite"
