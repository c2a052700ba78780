export const UNREACHABLE = "The server cannot be reached. Is it running?";

// Where the pages begin: a proxy may have put them below a path of its own.
const HOME = new URL("..", import.meta.url).href.replace(/\/$/, "");

export const at = (path) => HOME + path;

// Where the server's sockets are.
export const address = (path) => at(path).replace(/^http/, "ws");

// How long to wait before the next try. Not the same for everybody: a whole audience would come back
// at one moment.
export function pause(tries) {
  return Math.min(5000, 250 * 2 ** tries) * (0.5 + Math.random() / 2);
}

// Texts of a socket as events; a binary frame is the sound of the `speech` before it.
export function listen(socket, take) {
  let speech = null;
  socket.binaryType = "arraybuffer";
  socket.onmessage = ({ data }) => {
    if (data instanceof ArrayBuffer) {
      if (speech) take({ ...speech, sound: data });
      speech = null;
      return;
    }
    const event = JSON.parse(data);
    if (event.type === "speech") speech = event;
    else take(event);
  };
}

// A line that is dead without anybody being told: what may still come over it is not heard.
export function leave(socket) {
  socket.onclose = socket.onmessage = null;
  socket.close();
}
