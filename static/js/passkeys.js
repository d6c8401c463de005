// Hands each button of a passkey to django-allauth's scripts, with the ids that they need, and says
// when a passkey was not used: those scripts only log it.
for (const button of document.querySelectorAll("[data-passkey]")) {
  const { passkey, credential, passwordless } = button.dataset;
  const ids = { [passkey]: button.id, credential, passwordless };
  if (document.getElementById("js_data")) ids.data = "js_data";
  window.allauth.webauthn.forms[`${passkey}Form`]({ ids });
}

document.addEventListener("allauth.error", (event) => {
  event.preventDefault();
  document.getElementById("passkey-failed").hidden = false;
});
