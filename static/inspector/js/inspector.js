// What the pages gain with JavaScript: keys, theme without a reload, panes that open where they matter.
import { bindCopy } from "./copy.js";
import { bindKeys } from "./keys.js";
import { bindLive } from "./live.js";
import { bindPlay } from "./play.js";
import { bindTheme } from "./theme.js";
import { bindUpload } from "./upload.js";
import { settlePanes } from "./panes.js";

document.documentElement.dataset.js = "";
bindCopy();
bindKeys();
bindPlay();
bindLive();
bindUpload();
bindTheme();
settlePanes(document);
document.body.addEventListener("htmx:afterSettle", (event) => settlePanes(event.detail.elt));
