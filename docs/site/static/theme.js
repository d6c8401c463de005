// Runs before the first paint. The switch of the page (Furo's) keeps its choice under this name;
// without one, the choice made on the product's pages holds, and else that of the system.
"use strict";

const cookie = /(?:^|; )theme=(light|dark)(?:;|$)/.exec(document.cookie);
document.body.dataset.theme = localStorage.getItem("theme") || (cookie ? cookie[1] : "auto");
