// What the pages gain with JavaScript: keys, theme without a reload, panes that open where they matter.
import { bindAnnounce } from "./announce.js";
import { bindBulk } from "./bulk.js";
import { bindBusy } from "./busy.js";
import { bindCopy } from "./copy.js";
import { bindFaults } from "./faults.js";
import { bindFeed } from "./feed.js";
import { bindKeys } from "./keys.js";
import { bindLive } from "./live.js";
import { bindPanes } from "./panes.js";
import { bindPlay } from "./play.js";
import { bindTabs } from "./tabs.js";
import { bindTheme } from "./theme.js";
import { bindUpload } from "./upload.js";

document.documentElement.dataset.js = "";
bindAnnounce();
bindBulk();
bindBusy();
bindCopy();
bindFaults();
bindKeys();
bindPanes();
bindTabs();
bindPlay();
bindLive();
bindFeed();
bindUpload();
bindTheme();
