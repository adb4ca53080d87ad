/** Style sheets that a page's script imports; the build makes one file of them. */
declare module '*.css';

/** A picture in a script, as its `data:` address. */
declare module '*.svg' {
  const address: string;
  export default address;
}
