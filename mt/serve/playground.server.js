// Requests to the server this page came from, and what it refuses.

const MOST_WAIT = 600;  // s that a server may ask for

/** Why there is no answer: `status` is that of HTTP, 0 where nothing came back; `wait` is the seconds the server asks for. */
export class Refused extends Error {
  constructor(message, status, wait = null) {
    super(message);
    this.status = status;
    this.wait = wait;
  }
}

/** Storage that may be forbidden, or full: then nothing is kept. */
export const keep = {
  get(name, store = "localStorage") {
    try { return window[store].getItem(`mt-${name}`) ?? ""; } catch { return ""; }
  },
  set(name, value, store = "localStorage") {
    try { window[store].setItem(`mt-${name}`, value); } catch { /* the page works without */ }
  },
};

let key = keep.get("key", "sessionStorage");

/** The API key of all requests from now on. */
export function useKey(value) {
  key = value;
  keep.set("key", value, "sessionStorage");
}

export const hasKey = () => Boolean(key);

const authorization = () => (key ? {Authorization: `Bearer ${key}`} : {});

/** What `Retry-After` comes to in seconds, which may be a number or a date, within bounds; null where it is neither. */
function seconds(after) {
  const wait = /^\d+$/.test(after ?? "") ? Number(after) : Math.ceil((Date.parse(after) - Date.now()) / 1000);
  return Number.isFinite(wait) ? Math.min(Math.max(wait, 1), MOST_WAIT) : null;
}

function refusal(status, answer, after) {
  const message = typeof answer?.error === "string" ? answer.error : `The server answered with ${status}, and no reason.`;
  return new Refused(message, status, seconds(after));
}

const silence = () => new Refused("The server does not answer", 0);

/** The answer to a GET, or with a body to a POST, as JSON. Throws Refused; what `signal` ends throws an AbortError. */
export async function ask(path, body, signal) {
  const headers = authorization();
  if (body) headers["Content-Type"] = "application/json";
  try {
    const response = await fetch(path, {method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal, cache: "no-store"});
    const answer = await response.json().catch(error => { if (error.name === "AbortError") throw error; return null; });
    if (response.ok && answer) return answer;
    throw refusal(response.status, answer, response.headers.get("Retry-After"));
  } catch (error) {
    if (error instanceof Refused || error.name === "AbortError") throw error;
    throw silence();
  }
}

/** Send a file, be told which share of it is there, and get it back translated, as a blob. Throws like `ask`. */
export function sendFile(path, file, {progress, signal}) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();  // fetch does not tell how much was sent
    request.open("POST", path);
    request.responseType = "blob";
    request.setRequestHeader("Content-Type", "application/octet-stream");
    Object.entries(authorization()).forEach(([name, value]) => request.setRequestHeader(name, value));
    request.upload.onprogress = event => event.lengthComputable && progress(event.loaded / event.total);
    request.upload.onload = () => progress(1);
    request.onload = async () => {
      if (request.status === 200) {
        resolve(request.response);
      } else {
        const answer = await request.response.text().then(JSON.parse).catch(() => null);
        reject(refusal(request.status, answer, request.getResponseHeader("Retry-After")));
      }
    };
    request.onerror = () => reject(silence());
    request.onabort = () => reject(new DOMException("stopped", "AbortError"));
    signal.addEventListener("abort", () => request.abort());
    request.send(file);
  });
}
