/** All arithmetic of the page: layers of a sentence, their mix, cosine similarity. */

/** Which outputs are a model's layers, from 0 up. */
export function layerNames(outputs) {
  const upper = Object.keys(outputs)
    .map((name) => /^lstm_outputs(\d+)$/.exec(name))
    .filter(Boolean)
    .sort((a, b) => a[1] - b[1])
    .map((match) => match[0]);
  return ["word_emb", ...upper];
}

/** The tokens of a prediction and, for each layer, their vectors, all of one width: layer 0 stands there twice. */
export function readSentence(prediction, names) {
  const tokens = prediction.tokens.filter((token) => token !== "");
  const layers = names.map((name) =>
    tokens.map((_, place) => {
      const row = prediction[name][place];
      return Float32Array.from(name === "word_emb" ? [...row, ...row] : row);
    }),
  );
  return { tokens, layers };
}

export function softmax(weights) {
  const largest = Math.max(...weights);
  const powers = weights.map((weight) => Math.exp(weight - largest));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / sum);
}

/** gamma × the sum of the layers' vectors, weighted by softmax(weights): a vector for each token. */
export function mix(layers, weights, gamma) {
  const shares = softmax(weights);
  return layers[0].map((first, place) => {
    const sum = new Float32Array(first.length);
    layers.forEach((vectors, layer) => {
      const factor = gamma * shares[layer];
      const row = vectors[place];
      for (let k = 0; k < sum.length; k++) sum[k] += factor * row[k];
    });
    return sum;
  });
}

/** The vector of a word of several tokens is the mean of theirs. */
export function mean(vectors) {
  if (vectors.length === 1) return vectors[0];
  const sum = new Float32Array(vectors[0].length);
  for (const row of vectors) for (let k = 0; k < sum.length; k++) sum[k] += row[k] / vectors.length;
  return sum;
}

function dot(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k] * b[k];
  return sum;
}

export const norm = (vector) => Math.sqrt(dot(vector, vector));

export function distance(a, b) {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += (a[k] - b[k]) ** 2;
  return Math.sqrt(sum);
}

/** Cosine of the angle between two vectors; 0 if one of them is all zeros. */
export function cosine(a, b) {
  const lengths = norm(a) * norm(b);
  return lengths === 0 ? 0 : Math.min(1, Math.max(-1, dot(a, b) / lengths));
}

/** Cosine of every vector of one list with every one of another: a row of numbers for each of the first. */
export function cosines(rows, columns) {
  const unit = (vector) => {
    const length = norm(vector) || 1;
    return vector.map((value) => value / length);
  };
  const across = columns.map(unit);
  return rows.map(unit).map((row) => Float32Array.from(across, (column) => dot(row, column)));
}
