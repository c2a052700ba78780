// Why there is no microphone, and what to do about it.

// "" if there is one to ask for. Told before anything else, so that nobody talks to a deaf page.
export async function microphoneTrouble() {
  if (!window.isSecureContext) {
    return "This page cannot use the microphone, for it came without encryption. Ask whoever runs "
      + "the server for an address that begins with https://, or open the page on the server's own "
      + "machine as http://localhost. A file can be translated all the same.";
  }
  if (!navigator.mediaDevices?.getUserMedia) {
    return "This browser offers pages no microphone. Use another one, or translate a file.";
  }
  if (await permission() === "denied") return REFUSALS.NotAllowedError;
  const devices = await navigator.mediaDevices.enumerateDevices();
  return devices.some((device) => device.kind === "audioinput") ? "" : REFUSALS.NotFoundError;
}

const REFUSALS = {
  NotAllowedError: "The microphone is not allowed for this page. Click the symbol to the left of "
    + "the address, allow the microphone, and start again.",
  NotFoundError: "This machine has no microphone that the browser can see. Plug one in, then "
    + "start again; a file can be translated without one.",
  NotReadableError: "Another program holds the microphone. Close it, then start again.",
  OverconstrainedError: "That microphone is gone. Choose another one, then start again.",
};

// What went wrong when it was asked for.
export function refusal(error) {
  return REFUSALS[error.name] ?? error.message;
}

async function permission() {
  try {
    return (await navigator.permissions.query({ name: "microphone" })).state;
  } catch {
    return "unknown"; // not every browser tells
  }
}

// Calls back whenever the answer may have changed.
export async function onMicrophoneChange(call) {
  navigator.mediaDevices?.addEventListener("devicechange", call);
  try {
    (await navigator.permissions.query({ name: "microphone" })).addEventListener("change", call);
  } catch { /* then it is asked again when somebody starts */ }
}

// A list of the devices of a kind, after the usual one; returns how many there are. Names are told only
// once the microphone was allowed.
export async function fillDevices(select, kind) {
  const all = (await navigator.mediaDevices?.enumerateDevices()) ?? [];
  const found = all.filter((one) => one.kind === kind && one.deviceId && one.deviceId !== "default");
  const options = found.map((device, i) => new Option(device.label || `number ${i + 1}`, device.deviceId));
  const chosen = select.value;
  select.replaceChildren(select.options[0], ...options);
  select.value = found.some((device) => device.deviceId === chosen) ? chosen : "";
  return found.length;
}
