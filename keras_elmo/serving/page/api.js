/** The server's REST interface, as any client uses it. */

/** The server is away or too busy: the same question may be answered later. */
export class Unreachable extends Error {}

/** The server has answered that it cannot: asking again does not help. */
export class Refused extends Error {}

const MAX_WAIT = 10000;
const BUSY = new Set([429, 502, 503, 504]);

async function ask(path, options = {}) {
  let response, text;
  try {
    response = await fetch(path, { cache: "no-store", ...options });
    text = await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable();
  }
  if (BUSY.has(response.status)) throw new Unreachable();
  let answer;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new Refused(`The server's answer is no JSON (status ${response.status}).`);
  }
  if (!response.ok) throw new Refused(answer.error ?? `The server answered with status ${response.status}.`);
  return answer;
}

const modelPath = (name) => `/v1/models/${encodeURIComponent(name)}`;

/** The number of the version that is served; a server that is there says it at once. */
export async function servedVersion(name) {
  const { model_version_status: versions } = await ask(modelPath(name), { signal: AbortSignal.timeout(MAX_WAIT) });
  const served = versions.find((version) => version.state === "AVAILABLE");
  if (!served) throw new Unreachable();
  return served.version;
}

/** What is served: name, version, what the export says of it, and the inputs and outputs of each signature. */
export async function servedModel() {
  const { name, description } = await ask("/page/model.json");
  const version = await servedVersion(name);
  const { metadata } = await ask(`${modelPath(name)}/metadata`);
  return { name, version, description, signatures: metadata.signature_def.signature_def };
}

/** The outputs of a signature for one row of inputs: a sentence alone has the vectors that it has in any batch. */
export async function predict(name, signature, row, signal) {
  const { predictions } = await ask(`${modelPath(name)}:predict`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ signature_name: signature, instances: [row] }),
    signal,
  });
  return predictions[0];
}
