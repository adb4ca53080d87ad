/** Stands for preact where tsconfig.json says so. */
export {};
