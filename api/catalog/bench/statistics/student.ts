// Student's t distribution: its distribution function and its quantiles, for intervals over few tasks.

/** Lanczos' approximation, g = 7, with nine coefficients: relative error below 1e-14. */
const lanczos = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
];

/** Logarithm of the gamma function, for arguments from 0.5. */
function logGamma(x: number): number {
  const shifted = x - 1;
  const base = shifted + 7.5;
  const sum = lanczos.reduce(
    (total, coefficient, i) => (i === 0 ? coefficient : total + coefficient / (shifted + i)),
    0,
  );
  return 0.5 * Math.log(2 * Math.PI) + (shifted + 0.5) * Math.log(base) - base + Math.log(sum);
}

/** A denominator of the continued fraction is kept away from zero by Lentz's method. */
const kept = (value: number): number => (Math.abs(value) < 1e-300 ? 1e-300 : value);

/** Continued fraction of the incomplete beta function (Lentz's method); converges fast for x < (a + 1) / (a + b + 2). */
function betaFraction(x: number, a: number, b: number): number {
  let c = 1;
  let d = 1 / kept(1 - ((a + b) * x) / (a + 1));
  let result = d;
  for (let m = 1; m <= 500; m += 1) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / kept(1 + even * d);
    c = kept(1 + even / c);
    result *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / kept(1 + odd * d);
    c = kept(1 + odd / c);
    const step = d * c;
    result *= step;
    if (Math.abs(step - 1) < 1e-15) break;
  }
  return result;
}

/** The regularized incomplete beta function I_x(a, b); `rest` is 1 - x, given apart so that no digits are lost. */
function incompleteBeta(x: number, rest: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (rest <= 0) return 1;
  const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log(rest));
  return x < (a + 1) / (a + b + 2) ? (front * betaFraction(x, a, b)) / a : 1 - (front * betaFraction(rest, b, a)) / b;
}

/** How likely a t of these degrees of freedom is at least as far from zero as `t`: the two-sided p-value. */
export function twoSidedP(t: number, freedom: number): number {
  if (!Number.isFinite(t)) return 0;
  const square = t * t;
  return incompleteBeta(freedom / (freedom + square), square / (freedom + square), freedom / 2, 0.5);
}

/** The t that is exceeded in absolute value with probability `p`: 0.05 gives the bound of a 95 % interval. */
export function criticalT(p: number, freedom: number): number {
  let low = 0;
  let high = 1;
  while (twoSidedP(high, freedom) > p) high *= 2;
  for (let i = 0; i < 200 && high - low > 1e-14 * high; i += 1) {
    const middle = (low + high) / 2;
    if (twoSidedP(middle, freedom) > p) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}
