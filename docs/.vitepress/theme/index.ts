/** VitePress' own theme with the system's fonts: none has to be loaded. */
import theme from 'vitepress/theme-without-fonts';

export default theme;
