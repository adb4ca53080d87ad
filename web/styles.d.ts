/** Style sheets that a page's script imports; the build makes one file of them. */
declare module '*.css';
