// The dialog with what listeners need: a link, a QR code, and pages for a hall and for OBS.
import { $, show } from "./dom.js";
import { qrPicture } from "./qr.js";
import { audience, link, speakerLink } from "./room.js";

const EVERY = 3000; // ms between two looks at who listens

// `open` is called when somebody asks for the dialog, and shows it once there is a room.
export function offerShare(open) {
  $("share-open").addEventListener("click", () => {
    $("share-speaker").open = false; // what everybody may see shows the listeners' link alone
    open();
  });
  copies($("share-copy"), $("share-link"));
  copies($("speaker-copy"), $("speaker-link"));
}

function copies(button, field) {
  button.addEventListener("click", async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      button.textContent = "Copied";
    } catch { /* it is selected: the keyboard copies it */ }
  });
}

export function shareRoom(ours) {
  const { room, listener_token: token } = ours;
  const address = link("room", room, token);
  $("share-link").value = address;
  $("speaker-link").value = speakerLink(ours);
  for (const id of ["share-copy", "speaker-copy"]) $(id).textContent = "Copy";
  show("share-local", /^(localhost|127\..*|\[::1\])$/.test(location.hostname));
  $("share-hall").href = link("hall", room, token);
  $("share-overlay").href = link("overlay", room, token, "?lines=2&size=48&color=ffffff");
  $("share-code").replaceChildren(qrPicture(address, "QR code of the link for listeners"));
}

// `room()` is one whose audience nobody else tells, or null; looked at while somebody sees it. Who cannot be
// asked tells of nobody: the last number may be wrong by now.
export function watchAudience(room) {
  const look = async () => {
    const asked = document.visibilityState === "visible" && room();
    if (!asked) return;
    const listeners = await audience(asked);
    if (asked === room()) tellAudience(listeners);
  };
  setInterval(look, EVERY);
  look();
}

export function tellAudience(listeners) {
  $("audience").textContent = listeners ? `· ${listeners} listening` : "";
}
