// What the pages gain with JavaScript: keys, theme without a reload, panes that open where they matter.
import { bindAnswers } from "./answers.js";
import { bindBulk } from "./bulk.js";
import { bindComposer } from "./composer.js";
import { bindCopying } from "./copying.js";
import { bindFaults } from "./faults.js";
import { bindKeys } from "./keys.js";
import { bindMenus } from "./menus.js";
import { bindMorph } from "./morph.js";
import { bindPage } from "./page.js";
import { bindPanes } from "./panes.js";
import { bindPlay } from "./play.js";
import { bindSteps } from "./steps.js";
import { bindTape } from "./tape.js";

bindMorph();
bindMenus();
bindBulk();
bindFaults();
bindKeys();
bindSteps();
bindPage();
bindPanes();
bindTape();
bindPlay();
bindComposer();
bindCopying();
bindAnswers();
