// Sends a provider's answer once more, from this site, so that the browser adds the session's cookie.
"use strict";

document.getElementById("resend").submit();
