// How a variable of run.env asks for a secret that the platform makes up.

/** As it is written in moorage.yaml. */
export const askedSecret = '${{secret}}';

/** The whole value of a variable. */
export const generatedSecret = /^\$\{\{ {0,3}secret {0,3}\}\}$/;
