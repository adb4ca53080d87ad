/**
 * ffmpeg's decoders that a run may open, by family: the sound of the containers that sniff.ts knows. ffmpeg has a hundred
 * more, of games and of forgotten software, whose code nobody looks at.
 */
export const DECODER_FAMILIES: Readonly<Record<string, string>> = {
  // ISO/IEC 11172-3, 13818-3 and -7, 14496-3
  mpeg: 'mp1,mp1float,mp2,mp2float,mp3,mp3float,mp3adu,mp3adufloat,mp3on4,mp3on4float,aac,aac_fixed,aac_latm,als',
  xiph: 'opus,libopus,vorbis,libvorbis,speex,libspeex,flac',
  // ATSC A/52, ETSI TS 102 114, SMPTE 302M
  cinema: 'ac3,ac3_fixed,eac3,dca,truehd,mlp,s302m',
  lossless: 'alac,wavpack,tta,ape,wmalossless',
  windows: 'wmav1,wmav2,wmapro,wmavoice,adpcm_ms,adpcm_ima_wav,adpcm_yamaha,truespeech',
  // 3GPP TS 26.071 and 26.171, ITU-T G.722, G.726 and G.723.1
  telephone:
    'amrnb,amrwb,libopencore_amrnb,libopencore_amrwb,gsm,gsm_ms,libgsm,libgsm_ms,ilbc,qcelp,g722,g726,g726le,g723_1',
  quicktime: 'adpcm_ima_qt,mace3,mace6,qdm2,qdmc',
  flash: 'adpcm_swf,nellymoser',
  pcm:
    'pcm_alaw,pcm_mulaw,pcm_u8,pcm_s8,pcm_s8_planar,pcm_s16le,pcm_s16be,pcm_s16le_planar,pcm_s16be_planar,pcm_u16le,pcm_u16be,' +
    'pcm_s24le,pcm_s24be,pcm_s24le_planar,pcm_u24le,pcm_u24be,pcm_s32le,pcm_s32be,pcm_s32le_planar,pcm_u32le,pcm_u32be,' +
    'pcm_s64le,pcm_s64be,pcm_f16le,pcm_f24le,pcm_f32le,pcm_f32be,pcm_f64le,pcm_f64be,pcm_bluray,pcm_dvd',
  // A cover is copied, but its size is only known from the picture itself.
  covers: 'mjpeg,png',
};

/** For `-codec_whitelist`. */
export const DECODERS = Object.values(DECODER_FAMILIES).join(',');
