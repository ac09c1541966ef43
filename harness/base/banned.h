/* Functions with no safe use here become compile errors (after git's banned.h). */
#ifndef TL_BANNED_H
#define TL_BANNED_H
#define TL_BANNED(f) sorry_##f##_is_banned_in_tally
#undef strcpy
#define strcpy(d, s) TL_BANNED(strcpy)
#undef strcat
#define strcat(d, s) TL_BANNED(strcat)
#undef strncpy
#define strncpy(d, s, n) TL_BANNED(strncpy)
#undef strncat
#define strncat(d, s, n) TL_BANNED(strncat)
#undef sprintf
#define sprintf(...) TL_BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) TL_BANNED(vsprintf)
#undef gets
#define gets(s) TL_BANNED(gets)
#undef strtok
#define strtok(s, d) TL_BANNED(strtok)
#undef atoi
#define atoi(s) TL_BANNED(atoi)
#undef atol
#define atol(s) TL_BANNED(atol)
#undef atof
#define atof(s) TL_BANNED(atof)
#undef system
#define system(s) TL_BANNED(system)
#undef popen
#define popen(c, m) TL_BANNED(popen)
#undef gmtime
#define gmtime(t) TL_BANNED(gmtime)
#undef localtime
#define localtime(t) TL_BANNED(localtime)
#endif
