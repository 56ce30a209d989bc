// The conversation page and the overview follow what happens.
import { bindConversation } from "./conversation.js";
import { bindOverview } from "./overview.js";

bindConversation();
bindOverview();
