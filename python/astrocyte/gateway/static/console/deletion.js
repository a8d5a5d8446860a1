// Deletion: off until it is switched on, and each one is confirmed by typing what is deleted.

import { ApiError } from "./api.js";
import { el, field } from "./dom.js";

export const deletion = {
  on: false,
  // Called when the switch is turned.
  changed: () => {},

  off() {
    this.on = false;
  },

  control() {
    const turn = (event) => {
      this.on = event.target.checked;
      this.changed();
    };
    const box = el("input", { type: "checkbox", role: "switch", checked: this.on, onchange: turn });
    return el("label", { class: this.on ? "switch danger" : "switch" }, box, "Allow deletion");
  },
};

// A button that asks before it deletes; null while deletion is off. `act` gets the reason and may throw.
export function deleteButton({ label, name, explanation, withReason = false, act, done }) {
  if (!deletion.on) return null;
  return el("button", { type: "button", class: "danger", onclick: () => confirm() }, label);

  function confirm() {
    const typed = el("input", { autocomplete: "off", spellcheck: "false", required: true });
    const reason = el("input", { maxlength: "4096" });
    const failure = el("p", { class: "error", role: "alert", hidden: true });
    const submit = el("button", { type: "submit", class: "danger", disabled: true }, label);
    typed.addEventListener("input", () => (submit.disabled = typed.value !== name));
    const dialog = el(
      "dialog",
      { "aria-labelledby": "confirm-title" },
      el(
        "form",
        {
          onsubmit: async (event) => {
            event.preventDefault();
            submit.disabled = true;
            try {
              await act(reason.value);
              dialog.close();
              done();
            } catch (error) {
              failure.textContent = error instanceof ApiError ? error.message : "The server cannot be reached.";
              failure.hidden = false;
              submit.disabled = false;
            }
          },
        },
        el("h2", { id: "confirm-title" }, label),
        el("p", {}, explanation),
        el("p", {}, el("code", {}, name)),
        field("Type the id to confirm", typed),
        withReason ? field("Reason", reason, "Stored in the audit trail.") : null,
        failure,
        el(
          "div",
          { class: "buttons" },
          el("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Cancel"),
          submit,
        ),
      ),
    );
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
    typed.focus();
  }
}
