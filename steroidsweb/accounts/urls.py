"""The URLs of django-allauth that this program uses, and no others."""

from allauth.account import views as account
from django.apps import apps
from django.urls import include, path

urlpatterns = [
    path("inactive/", account.account_inactive, name="account_inactive"),
    path("leave/", account.logout, name="account_logout"),
]
if apps.is_installed("allauth.mfa"):
    from steroidsweb.accounts import second_factor

    urlpatterns += [
        path("again/", second_factor.again, name="account_reauthenticate"),
        path("second-factor/authenticate/", second_factor.ask_for_code, name="mfa_authenticate"),
        path("second-factor/totp/activate/", second_factor.set_up, name="mfa_activate_totp"),
        path("second-factor/recovery-codes/", second_factor.codes, name="mfa_view_recovery_codes"),
        path("second-factor/", include("allauth.mfa.urls")),  # those above come before their namesakes
    ]
if apps.is_installed("allauth.socialaccount.providers.openid_connect"):
    from steroidsweb.accounts import single_sign_on

    urlpatterns += [
        path("sign-in/<str:provider_id>/login/", single_sign_on.begin, name="openid_connect_login"),
        path("sign-in/<str:provider_id>/login/callback/", single_sign_on.end, name="openid_connect_callback"),
    ]
